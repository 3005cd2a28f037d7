"""Parking: what happens to a call past its budget. It goes on as a task, decided once."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from outlast.calls.call import RunningCall
from outlast.calls.gates.gate import CallRequest, Wait
from outlast.ids import TaskId
from outlast.tool_hints import Hints
from outlast.transitions.tasks.parked import Reason, ran
from outlast.transitions.tasks.requests import Question

_MESSAGE = (
    "Still running after {ran}; {why}, so it goes on in the background as task {task_id}. Its end will be told to "
    "you here. Go on with other work or end your turn; use check_background only if you need it now."
)
_AWAITING = (
    "Not run yet: it waits for {kind}, as task {task_id}. What becomes of it will be told to you here. Go on with "
    "other work or end your turn, and tell the user what it waits for."
)
_OUTSIDE = (
    "Its result comes from outside, as the end of task {task_id}, and will be told to you here. Go on with other work "
    "or end your turn."
)
_ASKS = (
    "It waits for an answer, as task {task_id}. It asks: {prompt}\nIf you know the answer, give it with "
    "check_background(task_id={task_id!r}, reply=...){fits}; else ask the user, who can also answer it directly. "
    "Its end will be told to you here."
)
_SO: Mapping[str, str] = {"budget": "that is past its budget", "steering": "a new message came"}


@dataclass(frozen=True, slots=True)
class Parked:
    """The call is a task now."""

    task_id: TaskId
    handle: dict[str, Any]


@dataclass(frozen=True, slots=True)
class NotParked:
    """The turn goes on waiting for the call; `reason` is told unless the turn is ending anyway."""

    reason: str | None


class Parking(Protocol):
    """Turns a call into a task, or says why not. Not interruptible: once begun, it is decided."""

    async def park(
        self, call: RunningCall, inner: asyncio.Task[Any], hints: Hints, budget: timedelta, *, reason: Reason
    ) -> Parked | NotParked:
        """A call that has a question becomes a task that asks it."""
        ...

    async def hand_out(self, call: CallRequest) -> Parked | NotParked:
        """A call whose result comes from outside becomes a task that waits for its completion."""
        ...

    async def wait(self, call: CallRequest, wait: Wait) -> Parked | NotParked:
        """A call that has not begun becomes a task that waits for somebody."""
        ...


def handle_of(task_id: TaskId, tool: str, budget_seconds: float, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What the model gets at once in place of a result."""
    why = _SO.get(facts["reason"], _SO["budget"])
    return {
        "type": "background",
        "task_id": task_id,
        "tool": tool,
        "budget_seconds": budget_seconds,
        **facts,
        "message": _MESSAGE.format(ran=ran(facts), why=why, task_id=task_id),
    }


def outside_handle(task_id: TaskId, tool: str) -> dict[str, Any]:
    """What the model gets at once of a call whose result comes from outside."""
    message = _OUTSIDE.format(task_id=task_id)
    return {"type": "background", "task_id": task_id, "tool": tool, "budget_seconds": 0, "message": message}


def asking_handle(task_id: TaskId, tool: str, budget_seconds: float, question: Question) -> dict[str, Any]:
    """What the model gets at once of a call that asks something."""
    fits = "" if question.schema is None else " with a value that fits the schema"
    return {
        "type": "background",
        "task_id": task_id,
        "tool": tool,
        "budget_seconds": budget_seconds,
        "awaiting": "question",
        "question": question.prompt,
        **({} if question.schema is None else {"schema": question.schema}),
        "message": _ASKS.format(task_id=task_id, prompt=question.prompt, fits=fits),
    }


def awaiting_handle(task_id: TaskId, tool: str, kind: str) -> dict[str, Any]:
    """What the model gets at once of a call that waits for somebody."""
    return {
        "type": "background",
        "task_id": task_id,
        "tool": tool,
        "budget_seconds": 0,
        "awaiting": kind,
        "message": _AWAITING.format(kind=kind, task_id=task_id),
    }
