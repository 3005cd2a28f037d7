"""OpenTelemetry spans of turns and tools; those of requests are FastAPI's. Without an SDK they cost next to nothing.

Of an error a span says the type alone: its words may have a secret in them, and the log has them masked.

A turn may begin later and in another process than the request that asked for it: the request's trace is kept with
the message, and the turn goes on with it.
"""

from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry import context, propagate, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

KEY = "trace"
"""Where a message's body keeps the trace it came with."""
_tracer = trace.get_tracer("outlast")

ToolCode = Callable[[Any], Coroutine[Any, Any, Any]]


def carrier() -> dict[str, str]:
    """The current trace in a form that can be stored; empty when there is none."""
    found: dict[str, str] = {}
    if trace.get_current_span().get_span_context().is_valid:
        propagate.inject(found)
    return found


@contextmanager
def turn_span(bodies: Iterable[Mapping[str, Any]], attributes: Mapping[str, Any]) -> Generator[Span]:
    """The span of one attempt of a turn, in the trace of the first message that has one."""
    carriers = (body.get(KEY) for body in bodies)
    first = next((each for each in carriers if each), None)
    parent = context.Context() if first is None else propagate.extract(first, context.Context())
    name = f"turn {attributes.get('outlast.agent', '')}".strip()
    with _span(name, attributes, parent, kind=SpanKind.CONSUMER) as span:
        yield span


@contextmanager
def _span(
    name: str,
    attributes: Mapping[str, Any],
    parent: context.Context | None = None,
    *,
    kind: SpanKind = SpanKind.INTERNAL,
) -> Generator[Span]:
    with _tracer.start_as_current_span(
        name,
        parent,
        kind=kind,
        attributes=dict(attributes),
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span
        except BaseException as exc:
            span.set_status(Status(StatusCode.ERROR, type(exc).__name__))
            raise


def traced(tool: str, call_id: str, run: ToolCode) -> ToolCode:
    """A tool's code in a span of its own, as long as it really runs, parked or not; itself when nobody traces."""
    if not trace.get_current_span().is_recording():
        return run

    async def in_span(args: Any) -> Any:
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.call.id": call_id}
        with _span(f"tool {tool}", attributes):
            return await run(args)

    return in_span
