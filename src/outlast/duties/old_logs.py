"""Takes ended turns out of logs that are kept for a time only, the oldest first. What each folds to stays."""

import asyncio
from collections import deque
from datetime import timedelta
from functools import partial

from outlast.events.kept import kept
from outlast.store.database import Database
from outlast.store.repositories import old_logs
from outlast.store.repositories.old_logs import OldTurn
from outlast.store.unit import Unit

_LISTED = 200


class OldLogs:
    """Folds beside the work: a page is read and folded without a transaction, and written in a short one."""

    def __init__(self, database: Database, time: timedelta) -> None:
        self._database = database
        self._time = time
        self._found: deque[OldTurn] = deque()
        self._last: OldTurn | None = None
        """Where to look on: what may not go now is passed over until the next time."""

    async def some(self) -> int:
        """Fold one page; 0 when nothing is left that may go."""
        while (turn := await self._next()) is not None:
            part = await self._database.read(partial(old_logs.next_part, turn=turn))
            if part is not None:
                few = await asyncio.to_thread(kept, part.events)
                if await self._database.transaction(partial(old_logs.fold, part=part, kept=few), name="retention"):
                    if part.is_last:
                        self._found.popleft()
                    return 1
            self._found.popleft()
        return 0

    async def _next(self) -> OldTurn | None:
        if not self._found:
            self._found = deque(await self._database.transaction(self._list, name="retention"))
        self._last = self._found[0] if self._found else None
        return self._last

    def _list(self, unit: Unit) -> list[OldTurn]:
        return old_logs.old_turns(unit.connection, unit.now - self._time, after=self._last, limit=_LISTED)
