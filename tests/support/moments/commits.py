"""Holding a transaction of a name at an exact moment, so that a test forces the order of two of them."""

import asyncio
import threading
from collections.abc import Awaitable
from typing import Any

from outlast.store.database import Database, Moment
from outlast.store.postgres.database import PostgresDatabase

_PATIENCE = 60.0


class HeldCommits:
    """While a name is held, the first commit of that name waits just before it until `release`.

    SQLite has one writer: everything that wants to commit meanwhile comes after it. On PostgreSQL that is so for
    everything that wants to commit in the same session.
    """

    def __init__(self, database: Database) -> None:
        self._names: dict[str, tuple[threading.Event, threading.Event]] = {}
        database.watcher = self._wait if isinstance(database, PostgresDatabase) else self._watch

    def hold(self, name: str) -> None:
        self._names[name] = (threading.Event(), threading.Event())

    async def reached(self, name: str) -> None:
        assert await asyncio.to_thread(self._names[name][0].wait, _PATIENCE)

    def release(self, name: str) -> None:
        self._names[name][1].set()

    def _watch(self, name: str, moment: Moment) -> None:
        released = self._reach(name, moment)
        if released is not None:
            assert released.wait(_PATIENCE), f"nobody released {name}"

    def _wait(self, name: str, moment: Moment) -> Awaitable[Any] | None:
        """Here the thread that commits is the one that must release."""
        released = self._reach(name, moment)
        return None if released is None else asyncio.to_thread(released.wait, _PATIENCE)

    def _reach(self, name: str, moment: Moment) -> threading.Event | None:
        held = self._names.get(name)
        if held is None or moment != "before" or held[0].is_set():
            return None
        held[0].set()
        return held[1]


async def let_run() -> None:
    """Let everything run that waits for nothing but its turn on the event loop."""
    for _ in range(100):
        await asyncio.sleep(0)
