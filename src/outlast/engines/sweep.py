"""The sweep: a loop in every worker that finds dead workers and gives what they ran to the living."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

import structlog

from outlast.engines.process import is_gone
from outlast.errors import StoreUnavailable
from outlast.ids import SessionId, TaskId, TurnId, WorkerId
from outlast.store.database import Database
from outlast.store.postgres import jobs
from outlast.store.repositories import tasks, turns, workers
from outlast.store.repositories.agents import FROZEN_SECONDS
from outlast.store.repositories.stored_task import WITH_WORKER, Task
from outlast.store.repositories.turns import TurnRow, TurnState
from outlast.store.repositories.workers import Roll, Sighting
from outlast.store.unit import Unit
from outlast.transitions import turn
from outlast.transitions.tasks import task_moves
from outlast.values.redact import error_chain

IdT = TypeVar("IdT")
log = structlog.get_logger("outlast.engine")

LOOK_SECONDS = 0.25
GRACE_SECONDS = 1.0
"""How long a lock must be free: a connection that was cut comes back sooner."""
QUIET_SECONDS = 3.0
"""After the database's own start, and after this process itself was away, everybody else looks dead."""
_LOOKS = 3
"""How often it must have been free, where a busy worker looks seldom: between two looks it may have been held."""
_GOODBYES = 3
_NEAR_SECONDS = 0.01
_TIDY_SECONDS = 5.0
_TOGETHER = 10
"""How much is given back in one commit: a worker may leave a hundred things, and nobody waits long for a few."""


class Judge:
    """Decides who is dead, from what was seen again and again. Of a process of this machine it is seen at once."""

    def __init__(self) -> None:
        self._missing: dict[WorkerId, tuple[float, int]] = {}
        self._looked_at: float | None = None
        self._quiet_until = 0.0

    def dead(self, roll: Roll, now: float, *, me: WorkerId | None = None) -> list[Sighting]:
        """`me` looks. If it has not been seen itself, nothing can be written, or the database's clock has jumped."""
        was_away = self._looked_at is not None and now - self._looked_at > QUIET_SECONDS
        is_unseen = any(each.id == me and each.silent_seconds > QUIET_SECONDS for each in roll.sightings)
        if was_away or is_unseen:
            self._missing.clear()
            self._quiet_until = now + QUIET_SECONDS
        self._looked_at = now
        missing = {each.id for each in roll.sightings if not each.is_connected}
        known = {each: self._missing.get(each, (now, 0)) for each in missing}
        self._missing = {each: (since, looks + 1) for each, (since, looks) in known.items()}
        is_quiet = now < self._quiet_until or roll.uptime_seconds < QUIET_SECONDS
        return [
            each
            for each in roll.sightings
            if is_gone(each.place, each.pid) or (not is_quiet and self._is_dead(each, now))
        ]

    def wait(self, now: float) -> float:
        """Seconds until the next look: not past the moment at which somebody's grace is over."""
        left = (since + GRACE_SECONDS - now for since, _ in self._missing.values())
        return min([LOOK_SECONDS, *(max(each, _NEAR_SECONDS) for each in left if each > 0)])

    def _is_dead(self, seen: Sighting, now: float) -> bool:
        if seen.silent_seconds > FROZEN_SECONDS:
            return True
        since, looks = self._missing.get(seen.id, (now, 0))
        return now - since >= GRACE_SECONDS and looks >= _LOOKS


class Sweep:
    """Owned by the engine. Whoever removes a dead worker's row decides its work; a rest is found by anyone later."""

    def __init__(
        self,
        database: Database,
        *,
        me: Callable[[], WorkerId],
    ) -> None:
        self._database = database
        self._me = me
        self._judge = Judge()
        self._tidied_at = float("-inf")
        self._running: asyncio.Task[None] | None = None
        self.is_requeueing = False
        """What a dead worker left is being given to others: whoever does that should do nothing else."""

    def start(self) -> None:
        self._running = asyncio.create_task(self._run(), name="sweep")

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    async def leave(self, worker_id: WorkerId) -> None:
        """A worker that leaves takes its own row away: what it still ran, it gives to others here and now."""
        try:
            await self._remove_dead(worker_id)
            for _ in range(_GOODBYES):
                if await self._requeue_left():
                    break
                await asyncio.sleep(LOOK_SECONDS)
        except Exception as exc:  # whatever it was: who leaves goes on to leave
            log.warning("left without a goodbye: others will notice", worker_id=worker_id, error=repr(exc))

    async def _run(self) -> None:
        while True:
            try:
                await self._look()
            except StoreUnavailable as exc:
                log.info("no sweep without the store", error=str(exc))
            except Exception as exc:
                log.error("a sweep failed; the next one tries again", exception=error_chain(exc))
            await asyncio.sleep(self._judge.wait(time.monotonic()))

    async def _look(self) -> None:
        roll = await self._database.read(workers.roll, is_single=True)
        for each in self._judge.dead(roll, time.monotonic(), me=self._me()):
            if each.id == self._me():
                continue  # that is for others to say: here it would only stop what runs
            log.warning("a worker is dead", worker_id=each.id, was_connected=each.is_connected)
            await self._remove_dead(each.id, seen_at=each.seen_at)
        now = time.monotonic()
        if now - self._tidied_at >= _TIDY_SECONDS:
            self._tidied_at = now
            await self._requeue_left()

    async def _remove_dead(self, worker_id: WorkerId, *, seen_at: int | None = None) -> None:
        def remove(unit: Unit) -> bool:
            if not workers.remove(unit, worker_id, seen_at=seen_at):
                return False
            jobs.give_back(unit, worker_id)
            return True

        if await self._database.transaction(remove, name="remove_dead"):
            await self._requeue_left()

    async def _requeue_left(self) -> bool:
        """A few at a time: nobody waits for the whole, and who dies in between leaves the rest. Turns come first.

        False: somebody held a session, and what is left there is looked for again soon.
        """
        tidied_at, self._tidied_at = self._tidied_at, float("-inf")  # whatever interrupts it: the next look goes on
        left = await self._database.read(workers.left)
        self.is_requeueing = True
        try:
            is_all = True
            for some in _portions(left.turns):
                is_all &= await self._database.transaction(
                    lambda unit, some=some: _give_back(unit, some), name="give_back"
                )
            for some in _portions(left.tasks):
                is_all &= await self._database.transaction(
                    lambda unit, some=some: self._orphaned(unit, some), name="orphaned"
                )
        finally:
            self.is_requeueing = False
        if is_all:
            self._tidied_at = tidied_at
        return is_all

    def _orphaned(self, unit: Unit, left: Mapping[TaskId, SessionId]) -> bool:
        """False: some were held by others."""
        unit.lock_free(left.values())
        still = _Still(unit)
        for task_id in left:
            task = tasks.get(unit.connection, task_id)
            if task is not None and task.state.value in WITH_WORKER and still.is_left(task):
                task_moves.orphaned(unit, task)
        return all(map(unit.has_locked, left.values()))


def _give_back(unit: Unit, left: Mapping[TurnId, SessionId]) -> bool:
    """False: some were held by others."""
    unit.lock_free(left.values())
    still = _Still(unit)
    for turn_id in left:
        row = turns.get(unit.connection, turn_id)
        if row is not None and row.state is TurnState.RUNNING and still.is_left(row):
            turn.requeue(unit, row, has_crashed=True)
    return all(map(unit.has_locked, left.values()))


def _portions(left: Mapping[IdT, SessionId]) -> Iterator[Mapping[IdT, SessionId]]:
    ids = iter(left)
    while some := list(islice(ids, _TOGETHER)):
        yield {each: left[each] for each in some}


class _Still:
    """Whether something is still left, in one transaction: another may have claimed it since it was found."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._is_there: dict[WorkerId, bool] = {}

    def is_left(self, found: TurnRow | Task) -> bool:
        """What runs without a worker was left by none."""
        worker_id = found.worker_id
        is_dead = worker_id is not None and not self._has_worker(worker_id)
        return is_dead and self._unit.has_locked(found.session_id)

    def _has_worker(self, worker_id: WorkerId) -> bool:
        """Asked once: a name that is gone does not come back, and one that is there stays until the commit."""
        if worker_id not in self._is_there:
            self._is_there[worker_id] = workers.is_present(self._unit, worker_id)
        return self._is_there[worker_id]
