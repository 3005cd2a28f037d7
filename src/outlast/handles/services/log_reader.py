"""Pages of a session's log for streams. Readers that stand at the same place share one look at the database."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import sqlalchemy as sa

from outlast.events.stream import Page, PageReader
from outlast.ids import SessionId
from outlast.store.database import Database
from outlast.store.repositories import events

_Look = tuple[SessionId, str, int, int, bool]


@dataclass(slots=True)
class LogPages:
    """One per runtime. A thousand readers that one commit wakes read its events once, not a thousand times.

    A look is shared only by those who asked before it began: what was committed before anybody asked, it sees.
    """

    database: Database
    _waiting: dict[_Look, "asyncio.Task[Page | None]"] = field(default_factory=dict[_Look, "asyncio.Task[Page | None]"])
    _running: set["asyncio.Task[Page | None]"] = field(default_factory=set["asyncio.Task[Page | None]"])

    def reader(self, owner_id: str, *, has_begun: bool = False) -> PageReader:
        """For one reader: whoever began to read may read to the end of the log, also when the session is deleted."""

        async def read(session_id: SessionId, after: int, limit: int) -> Page | None:
            nonlocal has_begun
            found = await self._shared((session_id, owner_id, after, limit, has_begun))
            has_begun = has_begun or found is not None
            return found

        return read

    async def close(self) -> None:
        """Before the database closes: looks whose readers have gone end too."""
        if self._running:
            await asyncio.wait(self._running)

    def _shared(self, look: _Look) -> Awaitable[Page | None]:
        found = self._waiting.get(look)
        if found is None:
            found = asyncio.create_task(self._look(look), name=f"read {look[0]}")
            self._waiting[look] = found
            self._running.add(found)
            found.add_done_callback(self._ended)
        return asyncio.shield(found)

    async def _look(self, look: _Look) -> Page | None:
        await asyncio.sleep(0)  # whoever was woken by the same commit comes along
        del self._waiting[look]
        return await self.database.read(_page(*look), is_single=True)

    def _ended(self, look: "asyncio.Task[Page | None]") -> None:
        self._running.discard(look)
        if not look.cancelled():
            look.exception()  # told to whoever still waits for it


def _page(
    session_id: SessionId, owner_id: str, after: int, limit: int, with_deleted: bool
) -> Callable[[sa.Connection], Page | None]:
    def page(connection: sa.Connection) -> Page | None:
        return events.look(
            connection, session_id, after=after, limit=limit, owner_id=owner_id, with_deleted=with_deleted
        )

    return page
