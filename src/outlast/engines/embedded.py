"""The embedded engine: this process, one SQLite file, and a lock that keeps a second process out."""

import asyncio
import fcntl
import os
import socket
from collections.abc import Sequence
from datetime import datetime
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from typing import IO

import structlog

from outlast.clock import Clock
from outlast.duties.duty import Duty, DutyRunner
from outlast.errors import DatabaseInUse
from outlast.ids import WorkerId, is_task
from outlast.runs.worker import Places, Worker
from outlast.store.outbox import Work
from outlast.store.repositories import agents, pauses, tasks, turns
from outlast.store.sqlite.in_place import FilesInPlace
from outlast.store.unit import Unit
from outlast.transitions import turn
from outlast.transitions.tasks import task_moves

log = structlog.get_logger("outlast.engine")

_LONGEST_TIMER = 60.0


class FileLock:
    """Held by the one process that runs the work of a database file; the kernel frees it when that process ends."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + ".lock")
        self._file: IO[str] | None = None
        self._in_place = FilesInPlace()

    def acquire(self) -> None:
        file = self.path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            file.seek(0)
            pid = file.read().strip() or "unknown"
            file.close()
            raise DatabaseInUse(
                f"Another process (pid {pid}) already runs the work in this database. Stop it first, use another "
                "database file, or use PostgreSQL to run several processes on one database.",
                pid=pid,
            ) from exc
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        self._file = file
        self._in_place.remember(self.path)

    def check(self) -> None:
        """Raises `StoreUnavailable` if the lock keeps nobody out any more: a file of its name is another one."""
        self._in_place.check()

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class Line:
    """What waits for a place: by priority, then in the order in which it came."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Work]] = []
        self._arrivals = count()

    def __bool__(self) -> bool:
        return bool(self._heap)

    def push(self, work: Work) -> None:
        heappush(self._heap, (-work.priority, next(self._arrivals), work))

    @property
    def first(self) -> Work:
        return self._heap[0][2]

    def pop(self) -> None:
        heappop(self._heap)


class EmbeddedEngine:
    """Runs attempts as coroutines of this process, at most so many at once; the rest wait in order."""

    def __init__(
        self, worker: Worker, *, clock: Clock, places: Places, drain_seconds: float, duties: Sequence[Duty] = ()
    ) -> None:
        self._clock = clock
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._worker = worker
        self._places = places
        self._drain_seconds = drain_seconds
        self._turns, self._tasks = Line(), Line()
        worker.tasks.when_free(self._pump)
        worker.parts.waits.when_lent = self._pump
        self._duties = DutyRunner(duties)
        self._is_open = False

    async def start(self) -> None:
        """Reconcile first: whatever a dead process left running or queued goes on from here."""
        await self._worker.parts.database.transaction(self._reconcile, name="reconcile")
        self._is_open = True
        self._duties.start()
        self._pump()

    async def close(self) -> None:
        self._is_open = False
        await self._duties.close()
        for timer in self._timers.values():
            timer.cancel()
        await self._worker.close(self._drain_seconds)

    def claimant(self, unit: Unit, work: Work) -> WorkerId | None:
        line, room = (self._tasks, self._task_room) if is_task(work.id) else (self._turns, self._turn_room)
        is_free = self._is_open and not line and room > 0
        if not is_free or not self._worker.has(work) or unit.once(pauses.find) is not None:
            return None
        name = self._worker.expect(work)
        if not self._is_open:  # since it was looked at: this is another thread than the one that closes
            self._worker.forget(work)
            return None
        return name

    @property
    def _turn_room(self) -> int:
        return self._places.turns - self._worker.busy_turns

    @property
    def _task_room(self) -> int:
        return self._places.tasks - len(self._worker.tasks)

    def drop(self, work: Sequence[Work]) -> None:
        for each in work:
            self._worker.forget(each)
        self._pump()

    def enqueue(self, unit: Unit, work: Sequence[Work]) -> None:
        """The rows are the queue."""

    def notice(self, work: Sequence[Work]) -> None:
        for each in work:
            if each.claim is not None:
                self._begin(each)
            elif not self._worker.has(each):
                log.warning("nothing here has this agent: it waits", id=each.id, agent=each.agent)
            elif each.not_before is None:
                self._wait(each)
            else:
                self._delay(each, each.not_before)
        self._pump()

    def _delay(self, work: Work, until: datetime) -> None:
        seconds = max(0.0, (until - self._clock.now()).total_seconds())
        loop = asyncio.get_running_loop()
        # A long wait is looked at again and again: a timer does not count the hours in which the machine sleeps.
        if seconds > _LONGEST_TIMER:
            self._timers[work.id] = loop.call_later(_LONGEST_TIMER, self._delay, work, until)
        else:
            self._timers[work.id] = loop.call_later(seconds, self._due, work)

    def _due(self, work: Work) -> None:
        self._timers.pop(work.id, None)
        self._wait(work)
        self._pump()

    def _wait(self, work: Work) -> None:
        (self._tasks if is_task(work.id) else self._turns).push(work)

    def _pump(self) -> None:
        while self._is_open and self._turns and self._turn_room > 0:
            self._begin_first(self._turns)
        while self._is_open and self._tasks and self._task_room > 0:
            self._begin_first(self._tasks)

    def _begin_first(self, line: Line) -> None:
        """It is the first in line until it runs: no commit of another thread may take its place in between."""
        self._begin(line.first)
        line.pop()

    def _begin(self, work: Work) -> None:
        running = self._worker.begin(work)
        if running is not None:
            running.add_done_callback(self._ended)

    def _ended(self, _: asyncio.Task[None]) -> None:
        self._pump()

    def _reconcile(self, unit: Unit) -> None:
        me = self._worker.parts.worker_id
        agents.enter_alone(unit, me, self._worker.parts.hosts, host=socket.gethostname(), pid=os.getpid())
        for row in turns.queued_and_admitted(unit.connection):
            unit.submit(Work(row.id, row.owner_id, row.agent, row.not_before))
        for row in turns.running_without(unit.connection, me):
            turn.requeue(unit, row, has_crashed=True)
        for work in task_moves.in_turn(tasks.queued(unit.connection)):
            unit.submit(work)
        for task in tasks.running_without(unit.connection, me):
            task_moves.orphaned(unit, task)
