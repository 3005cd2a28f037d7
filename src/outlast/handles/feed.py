"""One stream over all sessions of an owner: replay from a cursor, then follow. Complete, in order, nothing twice.

It tells what changes in every session, and everything of the sessions whose logs are asked for. A session's
events come in the order of its log; those of different sessions in the order of their commits.
"""

import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import NamedTuple, Self

import sqlalchemy as sa

from outlast.errors import InvalidInput, NotFound
from outlast.events.event import Event
from outlast.events.signals import Signals, Subscription, feed_topic, log_topic
from outlast.events.types import EventType
from outlast.ids import OwnerId, SessionId
from outlast.store.database import Database
from outlast.store.repositories import events, feed, sessions
from outlast.store.repositories.feed import Line

PAGE = 500
MOST_LOGS = 20
"""Sessions whose whole logs one stream may carry: each costs a read whenever something happens."""
NOW = "now"
_CURSOR = re.compile(r"1\.(\d{1,18})((?:\.ses_[0-9a-z]{26}:\d{1,18})*)")


class Fed(NamedTuple):
    """An event, and the cursor to resume from after it."""

    cursor: str
    event: Event


@dataclass(slots=True)
class _Place:
    """How far a reader is: in the feed, and in each log it asked for.

    A log is never ahead of the feed by a change of state. So a reader may come back and ask for other logs: what it
    had from a log it no longer asks for is exactly what the feed has told it.
    """

    number: int = 0
    logs: dict[SessionId, int] = field(default_factory=dict[SessionId, int])

    def copy(self) -> "_Place":
        return _Place(self.number, dict(self.logs))

    @property
    def cursor(self) -> str:
        return ".".join([f"1.{self.number}", *(f"{id}:{number}" for id, number in self.logs.items())])


def _parse(cursor: str) -> _Place:
    parts = _CURSOR.fullmatch(cursor)
    if parts is None:
        raise InvalidInput("This is not a cursor of the feed: give the one that came with an event, or none.")
    logs = (each.rpartition(":") for each in parts[2].split(".")[1:])
    return _Place(int(parts[1]), {SessionId(id): int(number) for id, _, number in logs})


class OwnerStream:
    """An async iterator over `(cursor, event)`. Use it in `async with`, or close it when you leave early.

    `after=None` begins at the beginning, `after="now"` with what comes next. A log that is asked for and that the
    cursor does not know is told from its beginning. Entering it raises `NotFound` for a session of another owner.
    """

    def __init__(
        self,
        database: Database,
        signals: Signals,
        owner_id: OwnerId,
        *,
        after: str | None = None,
        sessions: Sequence[SessionId | str] = (),
        follow: bool = True,
        show: Callable[[Event], Event] | None = None,
    ) -> None:
        """`show`: an event as this reader may see it."""
        if len(sessions) > MOST_LOGS:
            raise InvalidInput(f"{len(sessions)} logs are too many for one stream: ask for at most {MOST_LOGS}.")
        known = _Place() if after is None or after == NOW else _parse(after)
        asked = [SessionId(each) for each in sessions]
        self._place = _Place(known.number, {each: known.logs.get(each, 0) for each in asked})
        self._begins_now = after == NOW
        self._database = database
        self._owner_id = owner_id
        self._ready: deque[Fed] = deque()
        self._is_open = False
        self._is_at_end = False
        self._is_done = False
        self._is_following = follow
        self._show = show
        topics = [feed_topic(owner_id), *map(log_topic, asked)]
        self._subscription: Subscription | None = signals.subscribe(*topics) if follow else None

    @property
    def cursor(self) -> str:
        """Where the stream was opened, or how far it has read."""
        return self._place.cursor

    def __aiter__(self) -> AsyncIterator[Fed]:
        return self

    async def __anext__(self) -> Fed:
        while not self._ready:
            if self._is_done:
                raise StopAsyncIteration
            await self._fill()
        cursor, event = self._ready.popleft()
        return Fed(cursor, event if self._show is None else self._show(event))

    async def aclose(self) -> None:
        self._is_done = True
        self._ready.clear()
        self._subscription = None

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _open(self) -> None:
        if not self._is_open:
            self._place = await self._database.read(self._begin)
            self._is_open = True

    def _begin(self, connection: sa.Connection) -> _Place:
        place = self._place.copy()
        for session_id in place.logs:
            row = sessions.get(connection, session_id, self._owner_id)
            if row is None:
                raise NotFound("There is no such session.", id=session_id)
            if self._begins_now:
                place.logs[session_id] = row.last_event
        if self._begins_now:
            place.number = feed.last(connection, self._owner_id)
        return place

    async def _fill(self) -> None:
        await self._open()
        if self._is_at_end and self._subscription is not None:
            await self._subscription.wait()
            self._is_at_end = False  # a reader that asks again after a failed look must not wait for another signal
        page = await self._database.read(lambda connection: _Page(connection, self._owner_id, self._place.copy()))
        if self._is_done:
            return
        self._place = page.place
        self._ready.extend(page.told)
        self._is_at_end = page.is_last
        self._is_done = page.is_last and not self._is_following


class _Page:
    """What comes next after a place, from one moment of the database: the feed and the logs agree."""

    def __init__(self, connection: sa.Connection, owner_id: OwnerId, place: _Place) -> None:
        self.place = place
        self.told: list[Fed] = []
        self._connection = connection
        self._owner_id = owner_id
        lines = feed.page(connection, owner_id, place.number, PAGE)
        is_whole = all(map(self._line, lines))
        self.is_last = is_whole and len(lines) < PAGE and self._rests()

    def _line(self, line: Line) -> bool:
        """Tell a line of the feed; False when there is more to tell before it."""
        if line.session_id in self.place.logs and not self._log(line.session_id, line):
            return False
        self.place.number = line.number
        if line.session_id in self.place.logs:
            return True
        if line.event is not None:
            self._tell(line.event)
        elif line.type == EventType.SESSION_DELETED:
            self._tell(Event(line.session_id, line.event_number, line.type, line.at, {}))
        return True

    def _rests(self) -> bool:
        """What the logs have after the last change of state: words and calls of a running turn."""
        return all(self._log(session_id, None) for session_id in tuple(self.place.logs))

    def _log(self, session_id: SessionId, until: Line | None) -> bool:
        """Tell a log up to the event of a line, or up to its end; False when that did not fit in this page."""
        position = self.place.logs[session_id]
        if until is not None and position >= until.event_number:
            return True
        bounds = events.bounds(self._connection, session_id)
        if bounds is None:
            del self.place.logs[session_id]
            return True
        if position + 1 < bounds[0]:
            self._say_expired(session_id, bounds[0])
        end = bounds[1] if until is None else until.event_number
        while len(self.told) < PAGE:
            found = [
                (event, event.number)
                for event in events.page(self._connection, session_id, self.place.logs[session_id], PAGE)
                if event.number is not None and event.number <= end
            ]
            for event, number in found:
                self.place.logs[session_id] = number
                if until is not None and number == end:
                    self.place.number = until.number
                self._tell(event)
            if len(found) < PAGE:
                return True
        return False

    def _say_expired(self, session_id: SessionId, first: int) -> None:
        """The log no longer has what comes next: say what it has, and go on from there."""
        self.place.logs[session_id] = first - 1
        row = sessions.get(self._connection, session_id, self._owner_id)
        shown = (
            {} if row is None else {"id": row.id, "title": row.title, "turn_id": row.turn_id, "is_held": row.is_held}
        )
        data = {"first": first, "snapshot": shown}
        self._tell(Event(session_id, None, EventType.STREAM_EXPIRED.value, datetime.now(UTC), data))

    def _tell(self, event: Event) -> None:
        self.told.append(Fed(self.place.cursor, event))
