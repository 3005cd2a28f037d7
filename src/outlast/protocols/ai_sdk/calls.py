"""The calls of a turn as chunks of the AI SDK: each is asked for, announced once it is sure, and answered once."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from pydantic_ai.ui.vercel_ai.response_types import (
    BaseChunk,
    DataChunk,
    ToolApprovalRequestChunk,
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
    ToolInputErrorChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputErrorChunk,
)
from pydantic_core import from_json, to_json

from outlast.events.shown import shown
from outlast.events.types import EventType
from outlast.wire.task import Task

_BROKEN_OFF = "The answer was broken off before this call was asked for; it did not run."
_NOT_RUN = "The turn ended before this call ran."


@dataclass(slots=True)
class _Asked:
    """A call in a response that is not committed yet: it may still be dropped."""

    call_id: str
    tool: str
    texts: list[str] = field(default_factory=list[str])

    def never(self, why: str) -> BaseChunk:
        given = "".join(self.texts)
        return ToolInputErrorChunk(tool_call_id=self.call_id, tool_name=self.tool, input=given, error_text=why)


@dataclass(slots=True)
class _News:
    """What `data-call` holds."""

    call_id: str
    tool: str
    waiting: str | None = None
    progress: Any = None
    outcome: str | None = None
    """`parked`: it goes on in the background."""
    task_id: str | None = None


class CallChunks:
    """Takes what the log says of a turn's calls, and gives the chunks that each makes."""

    def __init__(self, *, has_approvals: bool = True) -> None:
        self._has_approvals = has_approvals
        self._asked: dict[str, _Asked] = {}
        """By part."""
        self._open: dict[str, str] = {}
        """Announced and not answered: the tool by call id."""
        self._answered: set[str] = set()
        self._news: dict[str, _News] = {}

    def ask(self, part: str, call_id: str, tool: str) -> list[BaseChunk]:
        self._asked[part] = _Asked(call_id, tool)
        self._answered.discard(call_id)
        return [ToolInputStartChunk(tool_call_id=call_id, tool_name=tool)]

    def grow(self, part: str, text: str) -> list[BaseChunk]:
        asked = self._asked[part]
        asked.texts.append(text)
        return [ToolInputDeltaChunk(tool_call_id=asked.call_id, input_text_delta=text)]

    def drop(self, part: str) -> list[BaseChunk]:
        asked = self._asked.pop(part, None)
        return [] if asked is None else [asked.never(_BROKEN_OFF)]

    def commit(self) -> list[BaseChunk]:
        """The response stands: its calls will be made."""
        asked, self._asked = self._asked, {}
        return [
            chunk for each in asked.values() for chunk in self._announce(each.call_id, each.tool, "".join(each.texts))
        ]

    def take(self, type_: str, data: Mapping[str, Any]) -> list[BaseChunk]:
        """An event of a call: `call.*`."""
        call_id, tool = data["call_id"], data.get("tool", "")
        match type_:
            case EventType.CALL_STARTED:
                return self._announce(call_id, tool, data.get("args"))
            case EventType.CALL_ENDED:
                # An output for a call that is not in this message would end the client's stream.
                return [*self._announce(call_id, tool, None), *self._answer(call_id, data)]
            case EventType.CALL_WAITING | EventType.CALL_PROGRESS:
                return self._tell(call_id, tool or self._open.get(call_id, ""), data)
            case _:
                return []

    def close(self, state: str, output: Any) -> list[BaseChunk]:
        """Leave no call open at the end of the turn."""
        chunks = [each.never(_NOT_RUN) for each in self._asked.values()]
        for call_id in self._open:
            if state == "completed":
                # Only a call of the agent's output has no end of its own in the log.
                chunks.append(ToolOutputAvailableChunk(tool_call_id=call_id, output=shown(output)))
            else:
                chunks.append(ToolOutputErrorChunk(tool_call_id=call_id, error_text=_NOT_RUN))
        return chunks

    def _announce(self, call_id: str, tool: str, args: Any) -> list[BaseChunk]:
        if call_id in self._open or call_id in self._answered:
            return []
        self._open[call_id] = tool
        return [ToolInputAvailableChunk(tool_call_id=call_id, tool_name=tool, input=_arguments(args))]

    def _answer(self, call_id: str, data: Mapping[str, Any]) -> list[BaseChunk]:
        """One output for each call. Of one that goes on in the background it is the handle; `data-task` tells more."""
        tool = self._open.pop(call_id, None)
        if tool is None:
            return []
        self._answered.add(call_id)
        output = shown(data["part"].get("content"))
        approval = _approval_of(data)
        if approval is not None and self._has_approvals:
            asked = ToolApprovalRequestChunk(approval_id=approval, tool_call_id=call_id)
            return [asked, *self._tell(call_id, tool, data)]
        if data["outcome"] == "parked":
            return [ToolOutputAvailableChunk(tool_call_id=call_id, output=output), *self._tell(call_id, tool, data)]
        if data["outcome"] == "success":
            return [ToolOutputAvailableChunk(tool_call_id=call_id, output=output)]
        text = output if isinstance(output, str) else to_json(output).decode()
        return [ToolOutputErrorChunk(tool_call_id=call_id, error_text=text)]

    def _tell(self, call_id: str, tool: str, data: Mapping[str, Any]) -> list[BaseChunk]:
        news = self._news.setdefault(call_id, _News(call_id, tool))
        news.waiting = data.get("reason", news.waiting)
        news.progress = data.get("progress", news.progress)
        news.outcome = data.get("outcome", news.outcome)
        news.task_id = data.get("task_id", news.task_id)
        return [DataChunk(type="data-call", id=call_id, data=asdict(news))]


def _approval_of(data: Mapping[str, Any]) -> str | None:
    """The task whose approval the call waits for: it has no output until that is decided."""
    content = data["part"].get("content")
    handle = cast(dict[str, Any], content) if isinstance(content, dict) else {}
    return handle.get("task_id") if data["outcome"] == "parked" and handle.get("awaiting") == "approval" else None


def _arguments(args: Any) -> Any:
    """A model may send anything as arguments: what is no JSON is shown as it is."""
    if args is None or args == "":
        return {}
    if not isinstance(args, str):
        return shown(args)
    try:
        return from_json(args)
    except ValueError:
        return args


def decided_part(task: Task | None) -> dict[str, Any]:
    """How the part of a call that asked for an approval is by now, as its task is."""
    closed = None if task is None or task.request is None else task.request.closed
    if task is None or closed is None or closed.how not in ("approved", "refused"):
        return {}
    approval: dict[str, Any] = {"id": task.id, "approved": closed.how == "approved"}
    if closed.reason:
        approval["reason"] = closed.reason
    if closed.how == "refused":
        return {"state": "output-denied", "approval": approval}
    if task.state == "succeeded":
        return {"state": "output-available", "approval": approval, "output": shown(task.result)}
    if task.is_over:
        error = task.error or {"message": "It was canceled."}
        return {"state": "output-error", "approval": approval, "errorText": str(error.get("message"))}
    return {"state": "approval-responded", "approval": approval}
