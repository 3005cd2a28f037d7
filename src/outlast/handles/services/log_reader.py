"""Pages of logs, feeds and outputs for streams. Readers that stand at the same place share one look at the database."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import sqlalchemy as sa

from outlast.events.event import Event
from outlast.events.stream import Page, PageReader
from outlast.handles.services.shown import Shown
from outlast.ids import OwnerId, SessionId
from outlast.store.database import Database
from outlast.store.removed_sessions import no_such_session
from outlast.store.repositories import events, feed, old_logs
from outlast.store.repositories.feed import Line

T = TypeVar("T")
_FRESH = 200
"""Events that readers who follow are likely to be told in these moments."""


@dataclass(slots=True)
class LogPages:
    """One per runtime. A thousand readers that one commit wakes read its events once, not a thousand times.

    A look is shared only by those who asked before it began: what was committed before anybody asked, it sees.
    """

    database: Database
    replays: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Whoever replays a feed reads and encodes a page while holding it: ten at once hold others up no more than one."""
    _waiting: dict[Hashable, "asyncio.Task[Any]"] = field(default_factory=dict[Hashable, "asyncio.Task[Any]"])
    _running: set["asyncio.Task[Any]"] = field(default_factory=set["asyncio.Task[Any]"])

    _unpriced: OrderedDict[int, tuple[Event, Event]] = field(default_factory=OrderedDict[int, tuple[Event, Event]])

    def reader(self, owner_id: str, *, has_begun: bool = False) -> PageReader:
        """For one reader: whoever began to read may read to the end of the log, also when the session is deleted."""

        async def read(session_id: SessionId, after: int, limit: int) -> Page | None:
            nonlocal has_begun
            found = await self.page(session_id, owner_id, after, limit, has_begun)
            if found is None and not has_begun:
                raise await self.database.read(partial(no_such_session, session_id=session_id, owner_id=owner_id))
            has_begun = True
            return found

        return read

    def page(
        self, session_id: SessionId, owner_id: str, after: int, limit: int, with_deleted: bool = False
    ) -> Awaitable[Page | None]:
        """The next events of a log; None when there is no such session of this owner."""
        look = (session_id, owner_id, after, limit, with_deleted)
        return self.shared(look, _page(*look), is_single=True)

    def lines(self, owner_id: OwnerId, after: int, limit: int) -> Awaitable[list[Line]]:
        """The next lines of a feed."""
        return self.shared(("feed", owner_id, after, limit), _lines(owner_id, after, limit), is_single=True)

    def shared(self, key: Hashable, look: Callable[[sa.Connection], T], *, is_single: bool = False) -> Awaitable[T]:
        """`look`, once for all that ask with this key before it begins."""
        found: asyncio.Task[T] | None = self._waiting.get(key)
        if found is None:
            found = asyncio.create_task(self._look(key, look, is_single), name=f"read {key}")
            self._waiting[key] = found
            self._running.add(found)
            found.add_done_callback(self._ended)
        return asyncio.shield(found)

    def shown(self, shown: Shown) -> Callable[[Event], Event]:
        """Events as a reader may see them. What leaves out money is made once, for all whom it is made for."""
        if shown.is_money_shown:
            return shown.event

        def show(event: Event) -> Event:
            if not shown.secrets.is_empty:  # they may become more
                return shown.event(event)
            found = self._unpriced.get(id(event))
            if found is not None and found[0] is event:
                return found[1]
            made = shown.event(event)
            if made is not event:
                self._unpriced[id(event)] = (event, made)
                if len(self._unpriced) > _FRESH:
                    self._unpriced.popitem(last=False)
            return made

        return show

    async def close(self) -> None:
        """Before the database closes: looks whose readers have gone end too."""
        if self._running:
            await asyncio.wait(self._running)

    async def _look(self, key: Hashable, look: Callable[[sa.Connection], T], is_single: bool) -> T:
        await asyncio.sleep(0)  # whoever was woken by the same commit comes along
        del self._waiting[key]
        return await self.database.read(look, is_single=is_single)

    def _ended(self, look: "asyncio.Task[Any]") -> None:
        self._running.discard(look)
        if not look.cancelled():
            look.exception()  # told to whoever still waits for it


def _page(
    session_id: SessionId, owner_id: str, after: int, limit: int, with_deleted: bool
) -> Callable[[sa.Connection], Page | None]:
    def page(connection: sa.Connection) -> Page | None:
        found = events.next_page(
            connection, session_id, after=after, limit=limit, owner_id=owner_id, with_deleted=with_deleted
        )
        if found is None or not with_deleted or after + 1 >= found.first:
            return found
        return old_logs.read_on(connection, session_id, after, limit, last=found.last) or found

    return page


def _lines(owner_id: OwnerId, after: int, limit: int) -> Callable[[sa.Connection], list[Line]]:
    return lambda connection: feed.page(connection, owner_id, after, limit)
