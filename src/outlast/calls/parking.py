"""Parking: what happens to a call past its budget. It goes on as a task, decided once."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, Protocol

from outlast.calls.call import RunningCall
from outlast.clock import in_words
from outlast.ids import TaskId
from outlast.tools.hints import Hints

Reason = Literal["budget", "steering", "stop"]
"""Why a call goes on without its turn: past its budget, a person waits to be heard, or the turn has ended."""

_WHY: Mapping[str, str] = {
    "budget": "past its budget",
    "steering": "because a new message came",
    "stop": "because its turn ended",
}
_MESSAGE = (
    "Still running after {ran}; {why}, so it goes on in the background as task {task_id}. Its end will be told to "
    "you here. Go on with other work or end your turn; use check_background only if you need it now."
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
    """Turns a running call into a task, or says why not. Not interruptible: once begun, it is decided."""

    async def park(
        self, call: RunningCall, inner: asyncio.Task[Any], hints: Hints, budget: timedelta, *, reason: Reason
    ) -> Parked | NotParked: ...


def facts_of(reason: Reason, ran: timedelta) -> dict[str, Any]:
    """What is kept with the task: why it is one, and how long its call had run by then."""
    return {"reason": reason, "ran_seconds": round(ran.total_seconds(), 3)}


def handle_of(task_id: TaskId, tool: str, budget_seconds: float, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What the model gets at once in place of a result."""
    why = _SO.get(facts["reason"], _SO["budget"])
    return {
        "type": "background",
        "task_id": task_id,
        "tool": tool,
        "budget_seconds": budget_seconds,
        **facts,
        "message": _MESSAGE.format(ran=_ran(facts), why=why, task_id=task_id),
    }


def why_parked(facts: Mapping[str, Any]) -> str:
    """For the wake: when and why the call went on by itself."""
    return f"it was parked after {_ran(facts)}, {_WHY[facts['reason']]}"


def _ran(facts: Mapping[str, Any]) -> str:
    return in_words(timedelta(seconds=facts["ran_seconds"]))
