"""Holding a transaction of a name at an exact moment, so that a test forces the order of two of them."""

import asyncio
import threading

from outlast.store.database import Database, Moment

_PATIENCE = 30.0


class HeldCommits:
    """While a name is held, the first commit of that name waits just before it until `release`.

    SQLite has one writer: everything that wants to commit meanwhile comes after it.
    """

    def __init__(self, database: Database) -> None:
        self._names: dict[str, tuple[threading.Event, threading.Event]] = {}
        database.watcher = self._watch

    def hold(self, name: str) -> None:
        self._names[name] = (threading.Event(), threading.Event())

    async def reached(self, name: str) -> None:
        assert await asyncio.to_thread(self._names[name][0].wait, _PATIENCE)

    def release(self, name: str) -> None:
        self._names[name][1].set()

    def _watch(self, name: str, moment: Moment) -> None:
        held = self._names.get(name)
        if held is not None and moment == "before" and not held[0].is_set():
            held[0].set()
            assert held[1].wait(_PATIENCE), f"nobody released {name}"


async def let_run() -> None:
    """Let everything run that waits for nothing but its turn on the event loop."""
    for _ in range(100):
        await asyncio.sleep(0)
