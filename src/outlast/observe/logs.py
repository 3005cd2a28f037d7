"""Structured log lines, secrets masked, long values cut: one JSON object each, or lines that a person reads."""

import logging
import sys
from collections.abc import Callable, MutableMapping
from typing import Any, TextIO, cast

import structlog
from opentelemetry import trace

from outlast.observe.plain import plain
from outlast.values.redact import error_chain, redact

_FIXED = ("level", "timestamp", "logger", "trace_id")
_OWN = ("event", "level", "timestamp", "logger", "exception", "chain")


def configure(
    *,
    is_json: bool | None = None,
    level: str = "info",
    stream: TextIO | None = None,
    mask: Callable[[Any], Any] = lambda value: value,
) -> None:
    """Set up the process's logs: JSON for machines, or coloured lines when a person looks on. To stderr unless said.

    `mask` gives a value of a line without what must not be read in it.
    """
    out = sys.stderr if stream is None else stream
    for_machines = not out.isatty() if is_json is None else is_json
    rendering = [structlog.processors.JSONRenderer()] if for_machines else for_people()
    _configure(rendering, structlog.WriteLoggerFactory(file=out), level, mask)


def configure_unless_done(*, mask: Callable[[Any], Any]) -> None:
    """For a program that has not set up structlog: every line, its own too, to stderr, as a person reads it."""
    if not structlog.is_configured():
        # Each line asks for the stream anew: programs and test runners replace it.
        _configure(for_people(colors=sys.stderr.isatty()), lambda *_: structlog.WriteLogger(sys.stderr), "notset", mask)


def _configure(rendering: list[Any], factory: Callable[..., Any], level: str, mask: Callable[[Any], Any]) -> None:
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            add_trace,
            redacted,
            lambda _, __, line: masked(line, mask),
            *rendering,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=factory,
        cache_logger_on_first_use=False,
    )


def add_trace(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The trace that a line belongs to, if there is one."""
    span = trace.get_current_span().get_span_context()
    if span.is_valid:
        line["trace_id"] = trace.format_trace_id(span.trace_id)
    return line


def masked(line: MutableMapping[str, Any], mask: Callable[[Any], Any]) -> MutableMapping[str, Any]:
    """Names of fields, the level and the instant are ours, and stay."""
    return {name: value if name in _FIXED else mask(value) for name, value in line.items()}


def redacted(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Every value fit to be read by whoever reads logs; an exception keeps its whole chain of causes."""
    error = line.pop("exc_info", None)
    if error:
        found = error if isinstance(error, BaseException) else sys.exc_info()[1]
        if found is not None:
            line["exception"] = error_chain(found)
    own = {name: line[name] for name in _OWN if name in line}
    rest = cast(dict[str, Any], redact({name: value for name, value in line.items() if name not in own}))
    return {**own, **rest}


def for_people(*, colors: bool = True) -> list[Any]:
    """What a person sees: an exception on lines of its own, and nothing that a terminal would obey."""
    traceback = structlog.dev.plain_traceback
    return [readable, structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=traceback)]


def readable(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    chain = line.pop("chain", None)
    if chain is not None:
        line["exception"] = chain
    return {name: plain(value) if isinstance(value, str) else value for name, value in line.items()}
