"""How each kind of task that needs a worker is started on one."""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from outlast.runs.kinds import call
from outlast.runs.owned import SignalLatch
from outlast.runs.worker_parts import WorkerParts
from outlast.transitions.tasks.many_tasks import Claimed


class Start(Protocol):
    """Begins a task that this worker has claimed, and sees to it that its end is told and that a cancel reaches it.

    `latch` has listened since before the claim; it is closed when the task's own code hears what is said of it.
    """

    async def __call__(self, parts: WorkerParts, claimed: Claimed, latch: SignalLatch) -> asyncio.Task[Any]:
        """Gives what ends when the place of the task is free. If it raises, the task ends as failed."""
        ...


STARTS: Mapping[str, Start] = {"call": call.start}
