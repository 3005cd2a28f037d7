"""The embedded engine: this process, one SQLite file, and a lock that keeps a second process out."""

import asyncio
import fcntl
import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import sqlalchemy as sa
import structlog

from outlast.engines.engine import Worker
from outlast.errors import DatabaseInUse
from outlast.sessions import turn
from outlast.store import tasks, turns
from outlast.store.tasks import TaskState
from outlast.store.unit import Unit, Work
from outlast.tasks import service

log = structlog.get_logger("outlast.engine")


class FileLock:
    """Held by the one process that runs the work of a database file; the kernel frees it when that process ends."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + ".lock")
        self._file: IO[str] | None = None

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

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class EmbeddedEngine:
    """Runs attempts as coroutines of this process, at most so many at once; the rest wait in order."""

    def __init__(self, worker: Worker, *, max_running: int, drain_seconds: float) -> None:
        self._worker = worker
        self._max_running = max_running
        self._drain_seconds = drain_seconds
        self._waiting: deque[Work] = deque()
        self._is_open = False

    async def start(self) -> None:
        """Reconcile first: whatever a dead process left running or queued goes on from here."""
        await self._worker.workshop.database.transaction(self._reconcile, name="reconcile")
        self._is_open = True
        self._pump()

    async def close(self) -> None:
        self._is_open = False
        await self._worker.close(self._drain_seconds)

    def enqueue(self, connection: sa.Connection, work: Sequence[Work]) -> None:
        """The rows are the queue: nothing more to write."""

    def notice(self, work: Sequence[Work]) -> None:
        self._waiting.extend(work)
        self._pump()

    def _pump(self) -> None:
        while self._is_open and self._waiting and self._worker.running < self._max_running:
            running = self._worker.begin(self._waiting.popleft().turn_id)
            if running is not None:
                running.add_done_callback(self._ended)

    def _ended(self, _: asyncio.Task[None]) -> None:
        self._pump()

    def _reconcile(self, unit: Unit) -> None:
        me = self._worker.workshop.worker_id
        for row in turns.queued_and_admitted(unit.connection):
            unit.submit(Work(row.id, row.owner_id, row.agent))
        for row in turns.running_without(unit.connection, me):
            turn.requeue(unit, row, has_crashed=True)
        for task in tasks.running_without(unit.connection, me):
            service.end(unit, task.id, TaskState.FAILED, attempt=task.attempt, error=service.INTERRUPTED)
