"""The circuit breaker: the same failing call three times in a row is enough."""

from collections.abc import Iterable
from typing import Any, cast

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_core import from_json, to_json

from outlast.calls.gates.gate import RUN, Answer, CallRequest, Verdict
from outlast.calls.transient import is_transient

MOST = 3
ADVICE = (
    "This exact call has now failed {count} times in a row. Do not repeat it: change the arguments, use another "
    "tool, or tell the user what stands in the way."
)
REFUSED = (
    "Not run: this exact call failed {count} times in a row. Change the arguments, use another tool, or tell the "
    "user what stands in the way."
)
_TRANSIENT = "outlast_transient"


class Breaker:
    """A gate that counts identical failures in a row. Built from history, so that a crash does not reset it."""

    def __init__(self, history: Iterable[ModelMessage] = ()) -> None:
        self._key: tuple[str, str] | None = None
        self._count = 0
        calls: dict[str, ToolCallPart] = {}
        for message in history:
            if isinstance(message, ModelResponse):
                calls.update((part.tool_call_id, part) for part in message.parts if isinstance(part, ToolCallPart))
            else:
                self._add_returns(message, calls)

    def _add_returns(self, message: ModelRequest, calls: dict[str, ToolCallPart]) -> None:
        for part in message.parts:
            if isinstance(part, ToolReturnPart) and part.tool_call_id in calls and not _is_transient(part):
                call = calls[part.tool_call_id]
                self.record(call.tool_name, call.args, is_failure=part.outcome in ("failed", "retried"))

    async def admit(self, call: CallRequest) -> Verdict:
        return Answer(failure=REFUSED.format(count=MOST)) if self.refuses(call.tool, call.raw_args) else RUN

    def ended(self, call: CallRequest, error: BaseException | None) -> str | None:
        """What passes by itself does not count."""
        if error is not None and is_transient(error):
            return None
        count = self.record(call.tool, call.raw_args, is_failure=error is not None)
        return ADVICE.format(count=count) if count >= MOST else None

    def record(self, tool: str, args: Any, *, is_failure: bool) -> int:
        """Count an end; gives how many identical failures in a row there are now."""
        key = (tool, _canonical(args))
        if not is_failure:
            self._key, self._count = None, 0
        elif key == self._key:
            self._count += 1
        else:
            self._key, self._count = key, 1
        return self._count

    def refuses(self, tool: str, args: Any) -> bool:
        return self._count >= MOST and self._key == (tool, _canonical(args))


def mark_transient(part: ToolReturnPart) -> None:
    """Kept with the answer, so that whoever counts from history leaves it out too. No model sees it."""
    part.metadata = {**_metadata(part), _TRANSIENT: True}


def _is_transient(part: ToolReturnPart) -> bool:
    return _metadata(part).get(_TRANSIENT) is True


def _metadata(part: ToolReturnPart) -> dict[str, Any]:
    found: Any = part.metadata
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def _canonical(args: Any) -> str:
    value = args
    if isinstance(args, str):
        try:
            value = from_json(args)
        except ValueError:
            return args
    return to_json(_sorted(value)).decode()


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        return {name: _sorted(fields[name]) for name in sorted(fields)}
    if isinstance(value, list):
        return [_sorted(each) for each in cast(list[Any], value)]
    return value
