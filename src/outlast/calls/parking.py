"""Parking: what happens to a call past its budget. It goes on as a task, decided once."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from outlast.calls.call import RunningCall
from outlast.ids import TaskId
from outlast.tools.hints import Hints

_MESSAGE = (
    "Still running after {budget:g} s, so it goes on in the background as task {task_id}. Its end will be told to "
    "you here. Go on with other work or end your turn; use check_background only if you need it now."
)


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
        self, call: RunningCall, inner: asyncio.Task[Any], hints: Hints, budget: timedelta
    ) -> Parked | NotParked: ...


def handle_of(task_id: TaskId, tool: str, budget_seconds: float) -> dict[str, Any]:
    """What the model gets at once in place of a result."""
    return {
        "type": "background",
        "task_id": task_id,
        "tool": tool,
        "budget_seconds": budget_seconds,
        "message": _MESSAGE.format(budget=budget_seconds, task_id=task_id),
    }
