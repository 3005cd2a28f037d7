"""PostgreSQL: the same transaction functions, run on the event loop in a stack of their own."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, TypeVar
from uuid import uuid4

import sqlalchemy as sa
import structlog
from asyncpg.exceptions import InterfaceError, InternalClientError, PostgresError
from sqlalchemy import event
from sqlalchemy import exc as exc_types
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.util import await_only, greenlet_spawn

from outlast.backoff import growing
from outlast.clock import monotonic
from outlast.errors import InvalidInput, StoreUnavailable
from outlast.limits import Limits
from outlast.store.database import CommitWatcher, ShutdownDeadline, decided, hand_on, retry_while_unavailable
from outlast.store.outbox import Outbox, SilentOutbox
from outlast.store.sqlite.database import translate
from outlast.store.unit import Unit
from outlast.values.secrets import Secrets

T = TypeVar("T")
log = structlog.get_logger("outlast.store")

_RETRIES = 3
_STALLS = 10
FOREIGN = (
    exc_types.DBAPIError,
    exc_types.TimeoutError,
    OSError,
    PostgresError,
    InterfaceError,
    InternalClientError,  # what the driver makes of a connection that is cut between two of its steps
)
_UNAVAILABLE = frozenset({"08", "53", "57", "58", "XX"})
"""Classes of SQLSTATE: connection lost, resources used up, stopped by an operator, trouble of the system or inside."""
_READ_ONLY, _LOCKED, _TOO_LONG = "25006", "55P03", "25P04"
"""A server that reads and does not write, as a former primary does; one whose time for a lock or for all is over."""
_COLLIDED = frozenset({"40001", "40P01"})
"""Of two transactions, the one that gave way. By number: a server may speak any language."""
_STALE_PLAN = "cached statement plan is invalid"
"""What the driver says of a statement that it had prepared before a column changed: another version has migrated."""
_NOT_TEXT = "22021"
"""The SQLSTATE of a character that no text of PostgreSQL can hold: NUL."""
_PREPARED = 300
"""How many statements a connection keeps prepared: writes that go together are one for each combination."""
_RECYCLE_SECONDS = 600
IDLE_SECONDS = 2.0
"""Who says nothing for so long in a transaction is frozen: the server ends it, and with it the locks it holds.

An owner's locks are among them, and whoever works for that owner waits. One that was only stalled does it again."""
_IDLE = "25P03"
_STATUS = sa.text("SELECT pg_xact_status(CAST(CAST(:id AS text) AS xid8))")
_NEVER_GIVEN = "22023"
"""What is said of the number of a transaction that the server, after a crash, has not given to any yet."""
_FULL = "53100"
_BUSY = "53300"
_FULL_SECONDS = 5
"""When to try again on a full disk: a person must make room first."""


_FIRST_WAIT = 0.01


@dataclass(slots=True)
class _Attempts:
    """Each connection may have a stale plan of its own: those do not count, one for each connection of the pool.

    Nor do a few in which this process stood still for so long that the server ended the transaction.
    """

    stale: int
    stalls: int = _STALLS
    counted: int = 0
    wait: float = _FIRST_WAIT
    _waits: Iterator[float] = field(default_factory=lambda: growing(_FIRST_WAIT * 2))
    _began: float = field(default_factory=monotonic)

    def is_last(self, exc: Exception) -> bool:
        took, self._began = monotonic() - self._began, monotonic()
        if self.stale and _STALE_PLAN in str(getattr(exc, "orig", exc)):
            self.stale -= 1
        elif self.stalls and took > IDLE_SECONDS:
            self.stalls -= 1
        else:
            self.counted += 1
            self.wait = next(self._waits)
        return self.counted == _RETRIES


class PostgresDatabase:
    """Instants come from the database's clock. A function may run again after a serialisation or plan error."""

    def __init__(self, url: sa.URL, *, pool_size: int = 10, wait: float = 10.0, is_pooled: bool = False) -> None:
        """`wait`: seconds until who gets no connection, from the pool or from the server, is told to try again.

        `is_pooled`: behind a pooler that gives each transaction another session, so that none is prepared for.
        """
        self.watcher: CommitWatcher | None = None
        self._pool_size = pool_size
        arguments = connect_within(url, wait)
        if is_pooled:
            arguments |= {
                "statement_cache_size": 0,
                "prepared_statement_cache_size": 0,
                "prepared_statement_name_func": lambda: f"outlast_{uuid4()}",
            }
        else:
            # The driver's own, for what goes to it directly, and never anew only because it is old.
            kept = {
                "prepared_statement_cache_size": _PREPARED,
                "statement_cache_size": _PREPARED,
                "max_cached_statement_lifetime": 0,
            }
            arguments |= {name: value for name, value in kept.items() if name not in url.query}
        self._engine: AsyncEngine = create_async_engine(
            url,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=wait,
            pool_pre_ping=True,
            # The one that was used last knows its statements, and its server process is awake.
            pool_use_lifo=True,
            # Those that are seldom used are not kept until something on the way has forgotten them.
            pool_recycle=_RECYCLE_SECONDS,
            connect_args=arguments,
        )
        if not is_pooled:
            event.listen(self._engine.sync_engine, "connect", _bound_idleness)
        # All statements of one read see one moment, as they do on SQLite.
        self._reading = self._engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        # A single statement needs no transaction around it: one journey in place of three.
        self._glancing = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        # In place of a question over the wire, which SQLAlchemy puts into a transaction of its own: three round trips.
        self._engine.dialect.do_ping = _is_open
        self._outbox: Outbox = SilentOutbox()
        self.limits = Limits()
        self.secrets = Secrets()
        self._shutdown_deadline = ShutdownDeadline()
        self._is_closed = False

    def attach(self, outbox: Outbox) -> None:
        self._outbox = outbox

    async def transaction(self, fn: Callable[[Unit], T], *, name: str) -> T:
        return await decided(self._transaction(fn, name))

    async def read(self, fn: Callable[[sa.Connection], T], *, is_single: bool = False) -> T:
        # To the end also for a reader that has gone: a connection that is cancelled in the middle is thrown away.
        return await decided(self._read(fn, self._glancing if is_single else self._reading))

    async def glance(self, fn: Callable[[sa.Connection], T]) -> T:
        return await self.read(fn, is_single=True)

    async def _read(self, fn: Callable[[sa.Connection], T], engine: AsyncEngine) -> T:
        driver: Any = None

        def run() -> T:
            nonlocal driver
            with engine.sync_engine.connect() as connection:
                driver = connection.connection.driver_connection
                return fn(connection)

        for attempt in self._attempts():
            self._check_open()
            driver = None
            try:
                return await greenlet_spawn(run)
            except FOREIGN as exc:
                is_cut = driver is not None and driver.is_closed()
                if attempt.is_last(exc) or not (is_cut or _may_repeat(exc)):
                    raise self._shutdown_deadline.mark(unavailable(exc))  # noqa: B904 - it has its cause, or is the error itself
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _attempts(self) -> "Iterator[_Attempts]":
        return repeat(_Attempts(stale=self._pool_size))

    def begin_shutdown(self, seconds: float) -> None:
        self._shutdown_deadline.begin(seconds)

    async def close(self) -> None:
        self._is_closed = True
        await self._engine.dispose()

    def _check_open(self) -> None:
        """A pool that was closed would make new connections, and nobody would close those."""
        if self._is_closed:
            raise StoreUnavailable("The database is closed.", is_closed=True)

    async def _transaction(self, fn: Callable[[Unit], T], name: str) -> T:
        for attempt in self._attempts():
            self._check_open()
            try:
                result, unit = await self._run(fn, name)
            except FOREIGN as exc:
                if not attempt.is_last(exc) and _may_repeat(exc):
                    await asyncio.sleep(attempt.wait)
                    continue
                raise self._shutdown_deadline.mark(unavailable(exc))  # noqa: B904 - it has its cause, or is the error itself
            hand_on(self._outbox, unit.committed)
            return result
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _run(self, fn: Callable[[Unit], T], name: str) -> tuple[T, Unit]:
        done: tuple[T, Unit] | None = None
        unit: Unit | None = None

        def run() -> tuple[T, Unit]:
            nonlocal done, unit
            with self._engine.sync_engine.connect() as connection, connection.begin():
                unit = Unit(connection, outbox=self._outbox, limits=self.limits, secrets=self.secrets)
                result = fn(unit)
                unit.flush()
                assert unit.transaction_id
                if self.watcher is not None and (held := self.watcher(name, "before")) is not None:
                    await_only(held)
                done = result, unit
            return done

        try:
            # In one go: each call of SQLAlchemy's asynchronous engine would change stacks twice.
            done = await greenlet_spawn(run)
        except BaseException as exc:
            is_unknown = isinstance(exc, FOREIGN)
            if done is None or not is_unknown or not await self._was_committed(done[1], exc):
                if unit is not None:
                    unit.drop()
                raise
        if self.watcher is not None:
            self.watcher(name, "after")
        return done

    async def _was_committed(self, unit: Unit, exc: Exception) -> bool:
        """Find out what became of a commit whose answer was lost: to guess would lose or repeat what it wrote.

        A server that crashed forgets transactions whose log was not on disk, and gives their numbers again: that the
        number was committed does not say by whom.
        """
        log.warning("the answer to a commit was lost: asking what became of it", error=repr(exc))

        def status(connection: sa.Connection) -> tuple[str | None, bool]:
            found = connection.execute(_STATUS, {"id": unit.transaction_id}).scalar_one()
            return found, found == "committed" and unit.stands(connection)

        async def ask() -> tuple[str | None, bool]:
            try:
                # Each statement sees what is committed when it begins: the second one what the first one found.
                return await self.read(status, is_single=True)
            except FOREIGN as exc:
                if sqlstate(exc) == _NEVER_GIVEN:
                    return None, False
                raise

        while True:
            found, stands = await retry_while_unavailable(ask)
            if found != "in progress":
                return stands
            await asyncio.sleep(0.01)


def _bound_idleness(dbapi_connection: Any, _: object) -> None:
    """Past a pooler this would be said to whoever gets the server's session next, so there the role must say it."""

    async def say(connection: Any) -> None:
        await connection.execute(f"SET idle_in_transaction_session_timeout = {int(IDLE_SECONDS * 1000)}")

    dbapi_connection.run_async(say)


def _is_open(dbapi_connection: Any) -> bool:
    """What the driver knows by itself: a server that goes, or cuts a connection, closes it on this side too."""
    return not dbapi_connection.driver_connection.is_closed()


def _was_cut(exc: Exception) -> bool:
    """The connection ended under what used it: another one may be there at once."""
    return isinstance(exc, exc_types.DBAPIError) and exc.connection_invalidated


def _may_repeat(exc: Exception) -> bool:
    """Of a transaction that was not committed. Reads too can be in the way of a migration, and give way to it."""
    text = str(getattr(exc, "orig", exc))
    return _was_cut(exc) or sqlstate(exc) == _IDLE or sqlstate(exc) in _COLLIDED or _STALE_PLAN in text


def unavailable(exc: BaseException) -> BaseException:
    """A foreign error as ours, when PostgreSQL may later do what it could not do now, or never takes such a text."""
    if sqlstate(exc) == _NOT_TEXT:
        error = InvalidInput("A text holds a NUL character: remove it.")
    elif sqlstate(exc) == _FULL:
        error = StoreUnavailable(
            "The disk of the database is full; nothing of this was stored. Try again when there is room.",
            retry_after=_FULL_SECONDS,
        )
    elif sqlstate(exc) == _BUSY or isinstance(exc, exc_types.TimeoutError):
        error = StoreUnavailable("All connections to the database are in use; nothing was lost. Try again.")
    elif _is_unreachable(exc):
        error = StoreUnavailable("PostgreSQL cannot be used at the moment; nothing was lost. Try again.")
    else:
        return translate(exc)
    error.__cause__ = exc
    return error


def _is_unreachable(exc: BaseException) -> bool:
    """No connection, no room for one, no disk, or a server on its way down or up."""
    if isinstance(exc, exc_types.DBAPIError):
        if exc.connection_invalidated:
            return True
        exc = exc.orig or exc
    if isinstance(exc, ValueError):
        return False  # what the driver says of a value that no column can hold
    if isinstance(exc, OSError | exc_types.TimeoutError | InterfaceError | InternalClientError):
        return True
    return sqlstate(exc) in (_IDLE, _READ_ONLY, _LOCKED, _TOO_LONG) or sqlstate(exc)[:2] in _UNAVAILABLE


def connect_within(url: sa.URL, seconds: float) -> dict[str, Any]:
    """How long a connection may take to be made, for the driver; what the URL says of it wins."""
    return {} if "timeout" in url.query else {"timeout": seconds}


def sqlstate(exc: BaseException) -> str:
    """The SQLSTATE, if PostgreSQL gave one."""
    orig = exc.orig if isinstance(exc, exc_types.DBAPIError) else exc
    return str(getattr(orig, "sqlstate", None) or "")
