"""The sweep: a loop in every worker that finds dead workers and gives what they ran to the living."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TypeVar

import structlog

from outlast.engines.process import is_gone
from outlast.errors import StoreUnavailable
from outlast.ids import SessionId, TaskId, TurnId, WorkerId
from outlast.sessions import turn
from outlast.sessions.delete import Deletions
from outlast.sessions.inbox import Limits
from outlast.sessions.turn import Fence, TurnLimits
from outlast.store import deleted, jobs, tasks, turns, workers
from outlast.store.agents import FROZEN_SECONDS
from outlast.store.database import Database
from outlast.store.outbox import Work
from outlast.store.tasks import Task, TaskState
from outlast.store.turns import TurnRow, TurnState
from outlast.store.unit import Unit
from outlast.store.workers import Roll, Sighting
from outlast.tasks import service
from outlast.tools.redact import error_chain

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
    """Owned by the engine. Whoever removes a dead worker's row settles its work; a rest is found by anyone later."""

    def __init__(
        self,
        database: Database,
        *,
        me: Callable[[], WorkerId],
        runs: Callable[[TurnId], bool],
        remind: Callable[[Sequence[TaskId]], None],
        limits: Limits,
        deletions: Deletions,
    ) -> None:
        """`runs`: whether a turn of this worker is run by it. `remind`: whoever runs these tasks looks again."""
        self._database = database
        self._deletions = deletions
        self._me = me
        self._runs = runs
        self._remind = remind
        self._unrun: frozenset[Fence] = frozenset()
        """Of this worker's turns, those that it did not run when it last looked."""
        self._limits = limits
        self._judge = Judge()
        self._tidied_at = float("-inf")
        self._running: asyncio.Task[None] | None = None
        self.is_settling = False
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
            await self._bury(worker_id)
            for _ in range(_GOODBYES):
                if await self._settle():
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
            await self._bury(each.id, seen_at=each.seen_at)
        now = time.monotonic()
        if now - self._tidied_at >= _TIDY_SECONDS:
            self._tidied_at = now
            await self._tidy()

    async def _bury(self, worker_id: WorkerId, *, seen_at: int | None = None) -> None:
        def remove(unit: Unit) -> bool:
            if not workers.remove(unit, worker_id, seen_at=seen_at):
                return False
            jobs.give_back(unit, worker_id)
            return True

        if await self._database.transaction(remove, name="bury"):
            await self._settle()

    async def _tidy(self) -> None:
        """What was left half done, and jobs that are gone although what they meant is not."""
        await self._settle()
        await self._give_back_unrun()
        for task_id in await self._database.transaction(tasks.overdue, name="overdue"):
            await self._database.transaction(
                partial(service.expire, task_id=task_id, limits=self._limits), name="task.expire"
            )
        self._remind(await self._database.glance(lambda connection: tasks.to_cancel(connection, self._me())))
        self._deletions.look(await self._database.read(deleted.marked))
        forgotten = await self._database.read(workers.forgotten)
        for turn_id in forgotten.turns:
            await self._database.transaction(lambda unit, id=turn_id: _enqueue_turn(unit, id), name="enqueue")
        for task_id in forgotten.tasks:
            await self._database.transaction(lambda unit, id=task_id: _enqueue_task(unit, id), name="enqueue")
        await self._database.transaction(jobs.prune, name="prune")

    async def _give_back_unrun(self) -> None:
        """No reader may hang on a turn that nothing runs: neither on one of a worker that lives and lost it.

        Only one that was found twice: its end may have been committed just now.
        """
        held = await self._database.glance(lambda connection: turns.running_under(connection, self._me()))
        unrun = frozenset(Fence(row.session_id, row.id, row.attempt) for row in held if not self._runs(row.id))
        for fence in unrun & self._unrun:
            give_back = partial(_give_back_one, fence=fence, limits=self._limits.turns)
            log.error("nothing ran a turn that was claimed: it is given back", turn_id=fence.turn_id)
            await self._database.transaction(give_back, name="give_back")
        self._unrun = unrun

    async def _settle(self) -> bool:
        """A few at a time: nobody waits for the whole, and who dies in between leaves the rest. Turns come first.

        False: somebody held a session, and what is left there is looked for again soon.
        """
        tidied_at, self._tidied_at = self._tidied_at, float("-inf")  # whatever interrupts it: the next look goes on
        left, limits = await self._database.read(workers.left), self._limits.turns
        self.is_settling = True
        try:
            is_all = True
            for some in _portions(left.turns):
                is_all &= await self._database.transaction(
                    lambda unit, some=some: _give_back(unit, some, limits), name="give_back"
                )
            for some in _portions(left.tasks):
                is_all &= await self._database.transaction(
                    lambda unit, some=some: self._orphaned(unit, some), name="orphaned"
                )
        finally:
            self.is_settling = False
        if is_all:
            self._tidied_at = tidied_at
        return is_all

    def _orphaned(self, unit: Unit, left: Mapping[TaskId, SessionId]) -> bool:
        """False: some were held by others."""
        unit.lock_free(left.values())
        still = _Still(unit)
        for task_id in left:
            task = tasks.get(unit.connection, task_id)
            if task is not None and task.state is TaskState.RUNNING and still.is_left(task):
                service.orphaned(unit, task, limits=self._limits)
        return all(map(unit.has_locked, left.values()))


def _give_back(unit: Unit, left: Mapping[TurnId, SessionId], limits: TurnLimits) -> bool:
    """False: some were held by others."""
    unit.lock_free(left.values())
    still = _Still(unit)
    for turn_id in left:
        row = turns.get(unit.connection, turn_id)
        if row is not None and row.state is TurnState.RUNNING and still.is_left(row):
            turn.requeue(unit, row, has_crashed=True, limits=limits)
    return all(map(unit.has_locked, left.values()))


def _give_back_one(unit: Unit, fence: Fence, limits: TurnLimits) -> None:
    unit.lock_free([fence.session_id])
    if unit.has_locked(fence.session_id):  # or somebody holds it: the next look finds the turn again
        turn.give_back(unit, fence, has_crashed=True, limits=limits)


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
        return not self._has_worker(found.worker_id) and self._unit.has_locked(found.session_id)

    def _has_worker(self, worker_id: WorkerId | None) -> bool:
        """Asked once: a name that is gone does not come back, and one that is there stays until the commit."""
        if worker_id is None:
            return False
        if worker_id not in self._is_there:
            self._is_there[worker_id] = workers.is_present(self._unit, worker_id)
        return self._is_there[worker_id]


def _enqueue_turn(unit: Unit, turn_id: TurnId) -> None:
    row = turns.get(unit.connection, turn_id)
    if row is None or not unit.try_lock(row.session_id):
        return
    row = turns.get(unit.connection, turn_id)
    if row is not None and row.state is TurnState.QUEUED and row.is_admitted:
        log.warning("a turn had no job", turn_id=turn_id)
        unit.submit(Work(row.id, row.owner_id, row.agent, row.not_before))


def _enqueue_task(unit: Unit, task_id: TaskId) -> None:
    task = tasks.get(unit.connection, task_id)
    if task is None or not unit.try_lock(task.session_id):
        return
    task = tasks.get(unit.connection, task_id)
    if task is not None and task.state is TaskState.QUEUED:
        log.warning("a task had no job", task_id=task_id)
        unit.submit(service.work_of(task, behind=tasks.waiting_count(unit.connection, task.owner_id)))
