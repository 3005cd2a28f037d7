"""Removes archived sessions that were kept long enough, one after another: their rows, then their files."""

from collections import deque
from datetime import timedelta
from functools import partial

from outlast.duties.deletions import Deletions
from outlast.ids import SessionId
from outlast.store.database import Database
from outlast.store.repositories import old_sessions
from outlast.store.repositories.old_sessions import OldSession
from outlast.store.unit import Unit
from outlast.transitions import deletion

SETTING = "keep_archived"
_LISTED = 50


class OldSessions:
    """As if their owners had deleted them. Whoever dies in between leaves the mark: the deletion goes on elsewhere."""

    def __init__(self, database: Database, deletions: Deletions, time: timedelta) -> None:
        self._database = database
        self._deletions = deletions
        self._time = time
        self._found: deque[OldSession] = deque()
        self._last: OldSession | None = None
        """Where to look on: what may not go now is passed over until the next time."""

    async def some(self) -> int:
        """Remove the next one, with those below it; 0 when there is none that may go."""
        while self._found or await self._has_more():
            self._last = old = self._found.popleft()
            marked = await self._database.transaction(partial(self._mark, old=old), name="retention")
            for each in marked:
                await self._deletions.finish(each)
            if marked:
                return len(marked)
        return 0

    async def _has_more(self) -> bool:
        self._found = deque(await self._database.transaction(self._list, name="retention"))
        if not self._found:
            self._last = None
        return bool(self._found)

    def _list(self, unit: Unit) -> list[OldSession]:
        found = old_sessions.archived(unit.connection, unit.now - self._time, after=self._last, limit=_LISTED)
        return list(found)

    def _mark(self, unit: Unit, old: OldSession) -> list[SessionId]:
        return deletion.mark_old(unit, old, unit.now - self._time, setting=SETTING)
