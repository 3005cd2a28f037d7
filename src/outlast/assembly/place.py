"""Where the database is: a file that one process holds, or a server that many use."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import sqlalchemy as sa

from outlast import extras
from outlast.clock import Clock
from outlast.engines.embedded import FileLock
from outlast.errors import InvalidInput
from outlast.events.signals import LocalSignals
from outlast.settings import Settings
from outlast.store import urls
from outlast.store.database import Database
from outlast.store.sqlite import opening


async def _nowhere_to_look() -> None:
    """A database elsewhere has files of its own."""


class Place:
    """A database that can be opened, with its signals; which of both it is, its address says."""

    def __init__(self, database: str | Path, settings: Settings, clock: Clock) -> None:
        self.url: sa.URL = urls.parse(str(database))
        if not self.is_embedded:
            extras.need("postgres", "A database on PostgreSQL")
        direct = settings.direct_database
        self.direct: sa.URL = self.url if direct is None else urls.parse(direct)
        """Past a pooler, for what needs a connection of its own: locks, LISTEN, jobs."""
        self._has_pooler = direct is not None
        self._settings = settings
        self._clock = clock
        self.check: Callable[[], Awaitable[None]] = _nowhere_to_look
        """Raises `StoreUnavailable` when a file that was opened is gone or another's."""

    @property
    def path(self) -> Path:
        """The file of an embedded database, or the name under which a server of this one leaves its files."""
        return urls.sqlite_path(self.url)

    @property
    def is_embedded(self) -> bool:
        """One process and a SQLite file; else PostgreSQL, and as many processes as there are."""
        return self.url.get_backend_name() == "sqlite"

    async def open(self, stack: AsyncExitStack) -> tuple[Database, LocalSignals]:
        """At the schema of this version. `stack` closes it."""
        return await (self._open_file(stack) if self.is_embedded else self._open_server(stack))

    async def _open_file(self, stack: AsyncExitStack) -> tuple[Database, LocalSignals]:
        if not self._settings.run_work:
            raise InvalidInput("A SQLite file has one process, and that one runs the work. Use PostgreSQL for more.")
        if not self.path.parent.is_dir():
            # A mistyped path would be a new and empty database.
            raise InvalidInput(f"There is no folder {self.path.parent} for the database: check the path, or make it.")
        lock = FileLock(self.path)
        lock.acquire()
        stack.callback(lock.release)
        database = await opening.open_sqlite(self.path, clock=self._clock, durability=self._settings.durability)
        stack.push_async_callback(database.close)

        async def check() -> None:
            lock.check()
            await database.check_in_place()

        self.check = check
        return database, LocalSignals()

    async def _open_server(self, stack: AsyncExitStack) -> tuple[Database, LocalSignals]:
        # What only PostgreSQL needs is imported here: a process on one file starts faster without it.
        from outlast.engines.notify import PostgresSignals
        from outlast.store.postgres.opening import open_postgres

        settings = self._settings
        database = await open_postgres(
            self.url,
            direct=self.direct if self._has_pooler else None,
            connections=settings.database_connections,
            wait=settings.connection_wait.total_seconds(),
        )
        stack.push_async_callback(database.close)
        signals = PostgresSignals(self.direct)
        await signals.start()
        stack.push_async_callback(signals.close)
        return database, signals
