"""SQLite: one writer thread with one connection, readers with their own.

Writers that wait together share one commit, each in a savepoint of its own: one that fails takes
nothing of the others with it, and nobody hears "done" before the commit is on disk.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy import exc as exc_types
from sqlalchemy.pool import NullPool

from outlast.clock import Clock
from outlast.errors import StoreUnavailable
from outlast.limits import Limits
from outlast.store.database import CommitWatcher, Decision, ShutdownDeadline, hand_on
from outlast.store.outbox import Outbox, SilentOutbox
from outlast.store.sqlite.in_place import FilesInPlace
from outlast.store.unit import Unit
from outlast.values.secrets import Secrets

T = TypeVar("T")

BUSY_SECONDS = 10.0
"""How long a change waits while another program holds the file locked."""
_SHARE = 128
_READERS = 4


@dataclass(slots=True)
class _Job:
    fn: Callable[[Unit], Any]
    name: str
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    unit: Unit | None = None
    result: Any = None
    error: BaseException | None = None

    def resolve(self, outbox: Outbox) -> None:
        """On the event loop: tell the engine and the readers, then whoever waits."""
        if self.unit is not None and self.error is None:
            hand_on(outbox, self.unit.committed)
        elif self.unit is not None:
            self.unit.drop()
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        elif isinstance(self.error, StopIteration):
            # A future refuses to hold one, and its waiter would wait for ever.
            wrapped = RuntimeError("a transaction function raised StopIteration")
            wrapped.__cause__ = self.error
            self.future.set_exception(wrapped)
        else:
            self.future.set_exception(self.error)


def make_engine(path: Path, *, durability: str) -> sa.Engine:
    engine = sa.create_engine(
        f"sqlite:///{path}",
        poolclass=NullPool,
        connect_args={"check_same_thread": False, "isolation_level": None, "timeout": BUSY_SECONDS},
    )

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _: object) -> None:  # pyright: ignore[reportUnusedFunction]
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {durability}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA busy_timeout = {round(BUSY_SECONDS * 1000)}")
        connection.execute("PRAGMA cache_size = -16000")
        # Pages that every commit writes anew are copied into the file less often.
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        # SQLite's own knows ASCII only; people search in their own language.
        connection.create_function("lower", 1, _lower, deterministic=True)

    return engine


class SqliteDatabase:
    def __init__(self, path: Path, *, clock: Clock, durability: str = "full") -> None:
        self.path = path
        self.watcher: CommitWatcher | None = None
        self._clock = clock
        self._engine = make_engine(path, durability=durability)
        self._outbox: Outbox = SilentOutbox()
        self.limits = Limits()
        self.secrets = Secrets()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="outlast-read")
        self._reading = threading.local()
        self._read_connections: list[sa.Connection] = []
        self._writer = threading.Thread(target=self._write, name="outlast-write", daemon=True)
        self._shutdown_deadline = ShutdownDeadline()
        self._in_place = FilesInPlace()
        self._is_remembered = False
        self._closed = False
        self._writer.start()

    def attach(self, outbox: Outbox) -> None:
        self._outbox = outbox

    async def transaction(self, fn: Callable[[Unit], T], *, name: str) -> T:
        if self._closed:
            raise StoreUnavailable("The database is closed.", is_closed=True)
        loop = asyncio.get_running_loop()
        decision: Decision[T] = Decision(loop=loop)
        self._jobs.put(_Job(fn, name, loop, decision))
        return await decision.reached()

    async def read(self, fn: Callable[[sa.Connection], T], *, is_single: bool = False) -> T:
        if self._closed:
            raise StoreUnavailable("The database is closed.", is_closed=True)
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, fn)

    async def glance(self, fn: Callable[[sa.Connection], T]) -> T:
        # On the event loop: the way to a thread and back takes longer, most of all while the loop has other work.
        if self._closed:
            raise StoreUnavailable("The database is closed.", is_closed=True)
        return self._read(fn)

    async def check_in_place(self) -> None:
        """Raises `StoreUnavailable` if the file, its log or the log's index is no longer the one that is open."""
        await asyncio.to_thread(self._in_place.check)

    def begin_shutdown(self, seconds: float) -> None:
        self._shutdown_deadline.begin(seconds)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._jobs.put(None)
        await asyncio.to_thread(self._writer.join)
        await asyncio.to_thread(self._readers.shutdown)
        for connection in self._read_connections:
            connection.close()
        self._engine.dispose()

    def _read(self, fn: Callable[[sa.Connection], T]) -> T:
        connection: sa.Connection | None = getattr(self._reading, "connection", None)
        try:
            if connection is None:
                connection = self._reading.connection = self._engine.connect()
                self._read_connections.append(connection)
            _raw(connection).execute("BEGIN")
            try:
                return fn(connection)
            finally:
                _end(connection, is_commit=False)
        except (exc_types.DBAPIError, sqlite3.Error) as exc:
            raise self._shutdown_deadline.mark(translate(exc))  # noqa: B904 - it has its cause, or is the error itself

    def _write(self) -> None:
        connection: sa.Connection | None = None
        stopping = False
        while not stopping:
            job = self._jobs.get()
            if job is None:
                break
            batch = [job]
            while len(batch) < _SHARE:
                try:
                    more = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    stopping = True
                    break
                batch.append(more)
            try:
                connection = connection or self._engine.connect()
                self._commit(connection, batch)
            except BaseException as exc:
                error = self._shutdown_deadline.mark(translate(exc))
                for each in batch:
                    each.error = each.error or error
                connection = _discard(connection)
                # If nobody else had the files open, whoever opens them next makes the log anew.
                self._is_remembered = bool(self._read_connections)
            for loop, jobs in groupby(batch, key=lambda each: each.loop):
                loop.call_soon_threadsafe(_resolve_all, list(jobs), self._outbox)
        _discard(connection)

    def _commit(self, connection: sa.Connection, batch: list[_Job]) -> None:
        """All that succeed in one commit. Raises only if the commit itself failed, and then nothing stands."""
        raw = _raw(connection)
        raw.execute("BEGIN IMMEDIATE")
        if not self._is_remembered:
            self._remember_files()
        if len(batch) == 1:
            self._run(connection, batch[0])
            if batch[0].error is not None:
                _end(connection, is_commit=False)
                return
        else:
            for job in batch:
                raw.execute("SAVEPOINT job")
                self._run(connection, job)
                if job.error is not None:
                    if not raw.in_transaction:
                        # SQLite itself rolled everything back, as it does when the disk is full.
                        raise job.error
                    raw.execute("ROLLBACK TO job")
                raw.execute("RELEASE job")
        self._watch(batch, "before")
        _end(connection, is_commit=True)
        self._watch(batch, "after")

    def _remember_files(self) -> None:
        """In the first transaction the log and its index are there. They stay until the last connection closes."""
        self._in_place.remember(self.path, *(Path(f"{self.path}{each}") for each in ("-wal", "-shm")))
        self._is_remembered = True

    def _run(self, connection: sa.Connection, job: _Job) -> None:
        unit = job.unit = Unit(
            connection,
            self._clock.now(),
            outbox=self._outbox,
            limits=self.limits,
            secrets=self.secrets,
            is_serial=True,
        )
        try:
            job.result = job.fn(unit)
            unit.flush()
        except BaseException as exc:
            job.error = self._shutdown_deadline.mark(translate(exc))

    def _watch(self, batch: list[_Job], moment: Any) -> None:
        if self.watcher is not None:
            for job in batch:
                if job.error is None:
                    self.watcher(job.name, moment)


def _resolve_all(jobs: list[_Job], outbox: Outbox) -> None:
    """One wake-up of the loop for all that shared a commit."""
    for job in jobs:
        job.resolve(outbox)


def _raw(connection: sa.Connection) -> sqlite3.Connection:
    """The driver's own connection, for statements that frame a transaction: they carry nothing to compile."""
    driver: Any = connection.connection.driver_connection
    return driver


def _end(connection: sa.Connection, *, is_commit: bool) -> None:
    """End the transaction; SQLAlchemy's own too, which is there only if a statement went through it."""
    ending = connection if connection.in_transaction() else _raw(connection)
    if is_commit:
        ending.commit()
    else:
        ending.rollback()


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _discard(connection: sa.Connection | None) -> None:
    if connection is not None:
        connection.invalidate()
        connection.close()


_UNAVAILABLE = (
    exc_types.OperationalError,
    exc_types.InterfaceError,
    exc_types.InternalError,
    sqlite3.OperationalError,
    sqlite3.InterfaceError,
    sqlite3.InternalError,
)


_WHY = {
    sqlite3.SQLITE_FULL: "The disk of the database is full: it needs room",
    sqlite3.SQLITE_BUSY: "Another program holds the database file locked",
    sqlite3.SQLITE_LOCKED: "Another program holds the database file locked",
}
_OTHERWISE = "The database did not take the change"


def translate(exc: BaseException) -> BaseException:
    """A foreign store error as ours, when the database may later do what it could not do now."""
    if not isinstance(exc, _UNAVAILABLE):
        return exc
    orig = exc.orig if isinstance(exc, exc_types.DBAPIError) else exc
    code: int = getattr(orig, "sqlite_errorcode", None) or 0
    if code == sqlite3.SQLITE_ERROR:
        return exc  # a wrong statement stays wrong
    error = StoreUnavailable(f"{_WHY.get(code & 0xFF, _OTHERWISE)}; nothing was lost. Try again.")
    error.__cause__ = exc
    return error
