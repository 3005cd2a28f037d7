"""A PostgreSQL server of a test's own, to stop, start, cut off and use up; looked at with plain SQL."""

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
from asyncpg.exceptions import TooManyConnectionsError

from outlast.store import urls
from outlast.store.postgres.opening import open_postgres
from tests.support.stores.postgres import Installation

_TEMPLATE = "migrated"
_OURS = "the test"
_CUT = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1 AND application_name <> $2"


@dataclass(frozen=True)
class TroubledPostgres:
    """Use it from one test at a time: what it does to a server, it does to all its databases."""

    installation: Installation

    async def new_database(self) -> str:
        """The name of a database with the schema in it; it is gone with the server."""
        async with self.connected() as connection:
            if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", _TEMPLATE):
                await connection.execute(f"CREATE DATABASE {_TEMPLATE}")
                await (await open_postgres(urls.parse(self.url(_TEMPLATE)))).close()
            name = f"test_{uuid.uuid4().hex[:12]}"
            await connection.execute(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
        return name

    def url(self, database: str) -> str:
        return self.installation.url(database)

    @asynccontextmanager
    async def down(self, mode: str) -> AsyncGenerator[None]:
        """The server is not there until this is left: ended in good order (`fast`), or crashed (`immediate`)."""
        await asyncio.to_thread(self.installation.stop, mode)
        try:
            yield
        finally:
            await asyncio.to_thread(self.installation.start)

    @asynccontextmanager
    async def read_only(self) -> AsyncGenerator[None]:
        """The server answers and takes no change until this is left, as a primary does that has become a standby."""
        await self._set_read_only("on")
        try:
            yield
        finally:
            await self._set_read_only("off")

    async def _set_read_only(self, on: str) -> None:
        async with self.connected() as connection:
            await connection.execute("SET default_transaction_read_only = off")
            await connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {on}")
            await connection.execute("SELECT pg_reload_conf()")
        while True:  # until a new session has it
            async with self.connected() as connection:
                if await connection.fetchval("SHOW default_transaction_read_only") == on:
                    return

    @asynccontextmanager
    async def connected(self, database: str = "postgres") -> AsyncGenerator[Any]:
        connection = await self._connect(database)
        try:
            yield connection
        finally:
            await connection.close()

    async def cut(self, database: str) -> int:
        """End every connection to a database but the test's own; how many there were."""
        async with self.connected() as connection:
            return await connection.fetchval(_CUT, database, _OURS)

    @asynccontextmanager
    async def used_up(self, database: str) -> AsyncGenerator[None]:
        """Every connection that the server allows is taken by somebody else, until this is left."""
        taken: list[Any] = [await self._connect("postgres")]
        try:
            # Counted by what is taken: a connection that is just being made takes a place and is not shown yet.
            most = int(await taken[0].fetchval("SHOW max_connections"))
            while len(taken) < most:
                try:
                    taken.append(await self._connect("postgres"))
                except TooManyConnectionsError:
                    await taken[0].fetchval(_CUT, database, _OURS)
            yield
        finally:
            for each in taken:
                await each.close()

    async def _connect(self, database: str) -> Any:
        driver: Any = asyncpg
        return await driver.connect(
            host=str(self.installation.folder),
            user="postgres",
            database=database,
            server_settings={"application_name": _OURS},
        )
