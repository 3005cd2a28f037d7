"""The turns of a worker that wait in one of the runtime's own tools: for which tasks, and whose places are free."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field

from outlast.ids import TaskId, TurnId

Publish = Callable[[bool], Awaitable[None]]
"""Says to all workers whether the turn waits."""


def _nobody_waits() -> None:
    return


@dataclass
class _Waiting:
    """Of one turn."""

    calls: int = 0
    tasks: set[TaskId] = field(default_factory=set[TaskId])
    lending: int = 0
    is_told: bool = False
    telling: asyncio.Lock = field(default_factory=asyncio.Lock)


class TurnWaits:
    """A turn gives its place away with its first call that waits for long, and takes it back with the last."""

    def __init__(self) -> None:
        self._turns: dict[TurnId, _Waiting] = {}
        self.when_lent: Callable[[], None] = _nobody_waits
        """Called when a place becomes free."""

    def lent(self, running: Collection[str]) -> int:
        """How many of these turns only wait."""
        return sum(each.lending > 0 for turn_id, each in self._turns.items() if turn_id in running)

    @contextmanager
    def waiting(self, turn_id: TurnId, task_ids: Iterable[TaskId]) -> Generator[Collection[TaskId]]:
        """Gives the tasks that all calls of the turn wait for, as they are at each moment.

        A task stays among them when it has ended: the call that waited for it tells the model.
        """
        turn = self._turns.setdefault(turn_id, _Waiting())
        turn.calls += 1
        turn.tasks.update(task_ids)
        try:
            yield turn.tasks
        finally:
            turn.calls -= 1
            if not turn.calls and self._turns.get(turn_id) is turn:
                del self._turns[turn_id]

    @contextmanager
    def lend(self, turn_id: TurnId) -> Generator[None]:
        """Inside `waiting`. At the end the turn takes its place again, also when no place is free."""
        turn = self._turns[turn_id]
        turn.lending += 1
        self.when_lent()
        try:
            yield
        finally:
            turn.lending -= 1

    async def publish(self, turn_id: TurnId, publish: Publish) -> None:
        """Say whether the turn waits, unless that was said last.

        Calls may begin and end to wait at the same time: what is said last is true.
        """
        turn = self._turns[turn_id]
        async with turn.telling:
            is_lent = turn.lending > 0
            if turn.is_told != is_lent:
                turn.is_told = is_lent  # first: a call that is cancelled meanwhile may have said it
                await publish(is_lent)
