"""The database of the cluster, as its operator has it: restarted, cut off, looked into."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import asyncpg

from tests.support.stores.postgres import Installation

_NAME = "chaos"
OWNER = "owner "
"""Before the number of each."""
_TABLES = ("sessions", "inputs", "turns", "tasks", "messages", "events", "schedules", "fires")
_OPEN = """
SELECT id FROM turns WHERE ended_at IS NULL
UNION ALL SELECT id FROM tasks WHERE ended_at IS NULL
UNION ALL SELECT inputs.id FROM inputs JOIN sessions ON sessions.id = inputs.session_id
WHERE inputs.state = 'waiting' AND NOT sessions.is_held
UNION ALL SELECT id FROM schedules WHERE due_at IS NOT NULL
"""
_NONE_IS_DUE = """
SELECT NOT EXISTS (SELECT 1 FROM schedules WHERE due_at <= (extract(epoch FROM clock_timestamp()) + 2) * 1000000)
"""
_EVERY_MINUTE = "SELECT id, session_id FROM schedules WHERE state = 'active' AND cron IS NOT NULL"
_CUT = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < $1
"""


class ClusterDatabase:
    """Everything here is plain SQL on connections of its own, so that no code under test is in between."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self.url = installation.url(_NAME)

    async def create(self) -> None:
        async with self._connected("postgres") as connection:
            await connection.execute(f"CREATE DATABASE {_NAME}")

    async def restart(self, mode: str) -> None:
        await asyncio.to_thread(self._installation.restart, mode)

    async def cut(self, share: float) -> None:
        """End so many of all connections."""
        async with self._connected() as connection:
            await connection.fetchval(_CUT, share)

    async def has_workers(self, count: int) -> bool:
        async with self._connected() as connection:
            return await connection.fetchval("SELECT count(*) FROM workers") >= count

    async def is_settled(self) -> bool:
        """Nothing is open, and nothing waits where no hold keeps it."""
        async with self._connected() as connection:
            return await connection.fetchval(f"SELECT NOT EXISTS ({_OPEN})")

    async def none_is_due(self) -> bool:
        """No schedule fires just now, nor should have fired."""
        async with self._connected() as connection:
            return await connection.fetchval(_NONE_IS_DUE)

    async def every_minute(self) -> list[tuple[str, str]]:
        """The schedules that would fire for ever, with their sessions."""
        async with self._connected() as connection:
            return [(row["id"], row["session_id"]) for row in await connection.fetch(_EVERY_MINUTE)]

    async def owners(self) -> dict[str, int]:
        """The number of the owner of each session."""
        async with self._connected() as connection:
            rows = await connection.fetch("SELECT id, owner_id FROM sessions")
        return {row["id"]: int(row["owner_id"].removeprefix(OWNER)) for row in rows}

    async def ends(self) -> dict[str, int]:
        """Where the log of each session ends."""
        async with self._connected() as connection:
            rows = await connection.fetch("SELECT id, last_event FROM sessions")
        return {row["id"]: row["last_event"] for row in rows}

    async def copy(self, path: Path) -> None:
        """What the judge looks at, as a file that outlives the server."""
        async with self._connected() as connection:
            with closing(sqlite3.connect(path)) as copy:
                for table in _TABLES:
                    await _copy(connection, table, copy)
                copy.commit()

    @asynccontextmanager
    async def _connected(self, name: str = _NAME) -> AsyncGenerator[Any]:
        driver: Any = asyncpg
        connection = await driver.connect(host=str(self._installation.folder), user="postgres", database=name)
        try:
            yield connection
        finally:
            await connection.close()


async def _copy(connection: Any, table: str, copy: sqlite3.Connection) -> None:
    found = await connection.prepare(f"SELECT * FROM {table}")
    names = [f'"{each.name}"' for each in found.get_attributes()]
    copy.execute(f"CREATE TABLE {table} ({', '.join(names)})")
    places = ", ".join("?" for _ in names)
    copy.executemany(f"INSERT INTO {table} VALUES ({places})", [tuple(row) for row in await found.fetch()])
