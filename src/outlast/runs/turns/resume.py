"""Deciding every open call before pydantic-ai sees it: it would execute them all."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequestPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from outlast.agents.messages import history
from outlast.calls.outcomes import MAY_HAVE_RUN, interrupted
from outlast.calls.parking import awaiting_handle, handle_of, outside_handle
from outlast.events.event import Event
from outlast.events.types import EventType
from outlast.ids import TaskId
from outlast.store.repositories.stored_task import Task
from outlast.transitions.kinds.session import SESSION
from outlast.transitions.tasks.parked import facts_of

_CONTENT: TypeAdapter[str | list[UserContent]] = TypeAdapter(str | list[UserContent])


@dataclass(frozen=True, slots=True)
class Recorded:
    """An end that stands in the log: exactly what the model was, or will be, given."""

    part: ToolReturnPart
    content: Any = None

    @property
    def parts(self) -> list[ModelRequestPart]:
        extra = [UserPromptPart(content=self.content)] if self.content else []
        return [self.part, *extra]


def returns_first(parts: Sequence[ModelRequestPart]) -> list[ModelRequestPart]:
    """Providers take no word between a step's calls and the last of their returns: what stands beside them follows."""
    return sorted(parts, key=lambda part: not isinstance(part, ToolReturnPart))


@dataclass(slots=True)
class OpenCallBook:
    """The calls that were open when an attempt began, and how each is answered.

    Ended in the log: that result. In flight: run again if its tool may be, else the truthful "may or may not".
    """

    in_flight: dict[str, ToolCallPart] = field(default_factory=dict[str, ToolCallPart])
    recorded: dict[str, Recorded] = field(default_factory=dict[str, Recorded])
    started: set[str] = field(default_factory=set[str])
    decided: set[str] = field(default_factory=set[str])
    """The calls whose end was known when the attempt began."""
    masked: set[str] = field(default_factory=set[str])
    """Those whose stored arguments are not the ones that were asked for: a secret in them was starred out."""
    untold: dict[str, TaskId] = field(default_factory=dict[str, TaskId])
    """Calls that became tasks, while their worker died before the log told that they had ended as calls."""

    def is_answered(self, call_id: str) -> bool:
        return call_id in self.recorded

    def is_masked(self, call_id: str) -> bool:
        return call_id in self.masked

    def was_in_flight(self, call_id: str) -> bool:
        return call_id in self.in_flight and call_id not in self.recorded

    def put_back(self, parts: Sequence[ModelRequestPart], uncertain: Sequence[str]) -> list[ModelRequestPart]:
        """The step's request with each decided call's answer in the place pydantic-ai made for it."""
        result: list[ModelRequestPart] = []
        for part in parts:
            call_id = part.tool_call_id if isinstance(part, ToolReturnPart) else ""
            if call_id in self.decided:
                result += self.recorded[call_id].parts
            elif call_id in uncertain:
                result.append(interrupted(self.in_flight[call_id].tool_name, call_id, MAY_HAVE_RUN))
            else:
                result.append(part)
        return returns_first(result)


def read_book(messages: Sequence[ModelMessage], logged: Iterable[Event], parked: Iterable[Task]) -> OpenCallBook:
    """From history, the call events that came after its last response (unpacked), and what became a task.

    Work that was given to a sub-session is no call that became a task: its call is run again, and waits for it again.
    """
    book = OpenCallBook(in_flight={call.tool_call_id: call for call in history.open_calls(messages)})
    book.masked = history.masked_calls(messages) & book.in_flight.keys()
    for task in parked:
        if task.call_id in book.in_flight and task.tool is not None and task.kind != SESSION.name:
            part = ToolReturnPart(tool_name=task.tool, content=_handle(task, task.tool), tool_call_id=task.call_id)
            book.recorded[task.call_id] = Recorded(part)
            book.decided.add(task.call_id)
            book.untold[task.call_id] = task.id
    for event in logged:
        call_id = event.data.get("call_id")  # none in one that cannot be read
        if call_id not in book.in_flight:
            continue
        if event.type == EventType.CALL_STARTED:
            book.started.add(call_id)
        else:
            content = event.data.get("content")
            beside = None if content is None else _CONTENT.validate_python(content)
            book.recorded[call_id] = Recorded(history.decode_part(event.data["part"]), beside)
            book.decided.add(call_id)
            book.untold.pop(call_id, None)
    return book


def _handle(task: Task, tool: str) -> dict[str, Any]:
    """What the model was, or will be, given of a call that is a task."""
    if task.kind == "external" and task.parked is None:
        return outside_handle(task.id, tool)
    if task.request is not None and task.parked is None:
        return awaiting_handle(task.id, tool, task.request["kind"])
    budget = task.spec.get("budget_seconds", 0)
    facts = task.parked or facts_of("budget", timedelta(seconds=budget))
    return handle_of(task.id, tool, budget, facts)
