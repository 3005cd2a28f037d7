"""Deciding every open call before pydantic-ai sees it: it would execute them all."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequestPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from outlast.calls.parking import handle_of
from outlast.events.event import Event
from outlast.events.types import EventType
from outlast.sessions import history
from outlast.store.tasks import Task
from outlast.tools.outcomes import MAY_HAVE_RUN, interrupted


@dataclass(frozen=True, slots=True)
class Recorded:
    """An end that stands in the log: exactly what the model was, or will be, given."""

    part: ToolReturnPart
    content: Any = None

    @property
    def parts(self) -> list[ModelRequestPart]:
        extra = [UserPromptPart(content=self.content)] if self.content else []
        return [self.part, *extra]


@dataclass(slots=True)
class OpenCallBook:
    """The calls that were open when an attempt began, and how each is answered.

    Ended in the log: that result. In flight: run again if its tool may be, else the truthful "may or may not".
    """

    in_flight: dict[str, ToolCallPart] = field(default_factory=dict[str, ToolCallPart])
    recorded: dict[str, Recorded] = field(default_factory=dict[str, Recorded])
    started: set[str] = field(default_factory=set[str])

    def is_answered(self, call_id: str) -> bool:
        return call_id in self.recorded

    def was_in_flight(self, call_id: str) -> bool:
        return call_id in self.in_flight and call_id not in self.recorded

    def put_back(
        self, parts: Sequence[ModelRequestPart], *, unknown: Iterable[str], missing_tools: Iterable[str]
    ) -> list[ModelRequestPart]:
        """The step's request with each decided call's recorded answer in the place pydantic-ai made for it."""
        told_unknown = {*unknown, *missing_tools}
        result: list[ModelRequestPart] = []
        for part in parts:
            call_id = part.tool_call_id if isinstance(part, ToolReturnPart) else None
            if call_id in self.recorded:
                result += self.recorded[call_id].parts
            elif call_id in told_unknown and call_id in self.in_flight:
                result.append(interrupted(self.in_flight[call_id].tool_name, call_id, MAY_HAVE_RUN))
            else:
                result.append(part)
        return result


def read_book(messages: Sequence[ModelMessage], logged: Iterable[Event], parked: Iterable[Task]) -> OpenCallBook:
    """From history, the call events that came after its last response (unpacked), and what became a task."""
    book = OpenCallBook(in_flight={call.tool_call_id: call for call in history.open_calls(messages)})
    for task in parked:
        if task.call_id in book.in_flight and task.tool is not None:
            handle = handle_of(task.id, task.tool, task.spec.get("budget_seconds", 0))
            part = ToolReturnPart(tool_name=task.tool, content=handle, tool_call_id=task.call_id)
            book.recorded[task.call_id] = Recorded(part)
    for event in logged:
        call_id = event.data["call_id"]
        if call_id not in book.in_flight:
            continue
        if event.type == EventType.CALL_STARTED:
            book.started.add(call_id)
        else:
            book.recorded[call_id] = Recorded(history.decode_part(event.data["part"]), event.data.get("content"))
    return book
