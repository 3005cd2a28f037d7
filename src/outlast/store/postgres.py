"""PostgreSQL: the same transaction functions, run through `AsyncConnection.run_sync`."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import sqlalchemy as sa
from asyncpg.exceptions import InterfaceError, PostgresError
from sqlalchemy import exc as exc_types
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from outlast.clock import from_microseconds
from outlast.errors import StoreUnavailable
from outlast.store.database import CommitWatcher, decided, hand_on
from outlast.store.sqlite import translate
from outlast.store.unit import Outbox, SilentOutbox, Unit

T = TypeVar("T")

_RETRIES = 3
FOREIGN = (exc_types.DBAPIError, exc_types.TimeoutError, OSError, PostgresError, InterfaceError)
_UNAVAILABLE = frozenset({"08", "53", "57", "58"})
"""Classes of SQLSTATE: connection lost, resources used up, stopped by an operator, trouble of the system."""
_NOW = sa.text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")


class PostgresDatabase:
    """Instants come from the database's clock. A function may run again after a serialisation or plan error."""

    def __init__(self, url: sa.URL, *, pool_size: int = 10) -> None:
        self.watcher: CommitWatcher | None = None
        self._engine: AsyncEngine = create_async_engine(url, pool_size=pool_size, pool_pre_ping=True)
        # All statements of one read see one moment, as they do on SQLite.
        self._reading = self._engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        self._outbox: Outbox = SilentOutbox()

    def attach(self, outbox: Outbox) -> None:
        self._outbox = outbox

    async def transaction(self, fn: Callable[[Unit], T], *, name: str) -> T:
        return await decided(self._transaction(fn, name))

    async def read(self, fn: Callable[[sa.Connection], T]) -> T:
        try:
            async with self._reading.connect() as connection:
                return await connection.run_sync(fn)
        except FOREIGN as exc:
            raise unavailable(exc)  # noqa: B904 - it has its cause, or is the error itself

    async def close(self) -> None:
        await self._engine.dispose()

    async def _transaction(self, fn: Callable[[Unit], T], name: str) -> T:
        for attempt in range(_RETRIES):
            try:
                result, unit = await self._run(fn, name)
            except FOREIGN as exc:
                if attempt + 1 < _RETRIES and _may_repeat(exc):
                    await asyncio.sleep(0.01 * 2**attempt)
                    continue
                raise unavailable(exc)  # noqa: B904 - it has its cause, or is the error itself
            hand_on(self._outbox, unit.committed)
            return result
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _run(self, fn: Callable[[Unit], T], name: str) -> tuple[T, Unit]:
        def run(connection: sa.Connection) -> tuple[T, Unit]:
            unit = Unit(connection, _now(connection))
            result = fn(unit)
            unit.flush(self._outbox)
            return result, unit

        async with self._engine.connect() as connection:
            async with connection.begin():
                pair = await connection.run_sync(run)
                if self.watcher is not None:
                    self.watcher(name, "before")
            if self.watcher is not None:
                self.watcher(name, "after")
        return pair


def _now(connection: sa.Connection) -> datetime:
    """Also the first statement of the transaction: only then has SQLAlchemy begun it on the server."""
    return from_microseconds(connection.execute(_NOW).scalar_one())


def _may_repeat(exc: Exception) -> bool:
    text = str(getattr(exc, "orig", exc))
    return any(sign in text for sign in ("InvalidCachedStatement", "deadlock", "could not serialize"))


def unavailable(exc: BaseException) -> BaseException:
    """A foreign error as ours, when PostgreSQL may later do what it could not do now."""
    if not _is_unreachable(exc):
        return translate(exc)
    error = StoreUnavailable("PostgreSQL cannot be used at the moment; nothing was lost. Try again.")
    error.__cause__ = exc
    return error


def _is_unreachable(exc: BaseException) -> bool:
    """No connection, no room for one, no disk, or a server on its way down or up."""
    if isinstance(exc, exc_types.DBAPIError):
        if exc.connection_invalidated:
            return True
        exc = exc.orig or exc
    if isinstance(exc, OSError | exc_types.TimeoutError | InterfaceError):
        return True
    return str(getattr(exc, "sqlstate", None) or "")[:2] in _UNAVAILABLE
