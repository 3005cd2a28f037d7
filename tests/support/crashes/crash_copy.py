"""The database as a process leaves it behind that is killed at an exact place, without killing anything."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from outlast.store.database import Moment


class CrashCopy:
    """A watcher that copies the file at the first commit of a name: what is not committed then is lost there."""

    def __init__(self, database: Path, copy: Path, name: str, moment: Moment) -> None:
        self.copy = copy
        self._database = database
        self._place = (name, moment)
        self._loop = asyncio.get_running_loop()
        self._is_made = asyncio.Event()

    def watch(self, name: str, moment: Moment) -> None:
        if (name, moment) == self._place and not self.copy.exists():
            with closing(sqlite3.connect(self._database)) as old, closing(sqlite3.connect(self.copy)) as new:
                old.backup(new)
            self._loop.call_soon_threadsafe(self._is_made.set)

    async def made(self) -> None:
        await self._is_made.wait()
