"""One stream over all sessions of an owner: replay from a cursor, then follow. Complete, in order, nothing twice.

It tells what changes in every session, everything of the sessions whose logs are asked for, and the output of the
tasks that are asked for. A session's events come in the order of its log; those of different sessions in the order
of their commits. Only progress may be late or left out: of a task whose session is not asked for, a reader that
follows is told at most once a second how far it is. What is held for that when a reader goes is not told again.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import sqlalchemy as sa

from outlast.clock import monotonic
from outlast.errors import InvalidInput
from outlast.events.event import Event
from outlast.events.signals import RECHECK_SECONDS, Signals, Subscription, feed_topic, log_topic
from outlast.events.stream import Page
from outlast.events.types import EventType
from outlast.handles.following import outputs as followed_outputs
from outlast.handles.following.merge import Fed, Merge
from outlast.handles.following.outputs import Outputs
from outlast.handles.following.place import MOST_LOGS, NOW, Place, asked_logs, asked_outputs, parse
from outlast.handles.following.progress import Progress
from outlast.handles.reading import expiry
from outlast.handles.services.log_reader import LogPages
from outlast.ids import OwnerId, SessionId
from outlast.store.database import Database
from outlast.store.removed_sessions import no_such_session
from outlast.store.repositories import feed, old_logs, retention, sessions

__all__ = ["MOST_LOGS", "PAGE", "Fed", "OwnerStream"]

PAGE = 500
_LEAST = 50
"""Of many logs little of each is read at once: what was read and is not told yet stays below a few pages."""
BURST_SECONDS = 0.02
"""Commits so soon after one that was told are told together. A short turn is a handful of them: to wake a thousand
readers for each would hold up whoever sent the message."""
_READER_SECONDS = 0.0005
"""The more readers a feed has, the longer: to tell one takes about a fifth of this, and the turn must go on."""
_LONGEST_BURST = 0.2


class OwnerStream:
    """An async iterator over `(cursor, event)`. Use it in `async with`, or close it when you leave early.

    `after=None` begins at the beginning, `after="now"` with what comes next. A log may be asked for from a position:
    `ses_…:4013`, or `ses_…:now`; without one it goes on where the cursor has it, else it is told from its beginning.
    The output of a task likewise: `tsk_…:12518`, `tsk_…:end`, or from its beginning. Entering it raises `NotFound`
    for a session or a task of another owner.
    """

    def __init__(
        self,
        database: Database,
        signals: Signals,
        owner_id: OwnerId,
        *,
        after: str | None = None,
        sessions: Sequence[SessionId | str] = (),
        outputs: Sequence[str] = (),
        follow: bool = True,
        show: Callable[[Event], Event] | None = None,
        pages: LogPages | None = None,
        max_lag: int = 10_000,
        says_live: bool = False,
    ) -> None:
        """`show`: an event as this reader may see it. `says_live`: it is told when all that was there has been told."""
        if outputs and not follow:
            raise InvalidInput("Output is told to a reader that follows: ask for the stream, or for the task's output.")
        self._asked, self._asked_outputs = asked_logs(sessions), asked_outputs(outputs)
        self._known = Place() if after is None or after == NOW else parse(after)
        self._begins_now = after == NOW
        self._database = database
        self._pages = pages or LogPages(database)
        self._owner_id = owner_id
        self._ready: deque[Fed] = deque()
        self._merge: Merge | None = None
        self._progress = Progress()
        self._outputs = Outputs(self._pages, ())
        self._is_done = False
        self._is_following = follow
        self._show = show
        self._max_lag = max_lag
        self._says_live = says_live and follow
        self._signals = signals
        self._subscription: Subscription | None = None
        self.is_live = False
        """Whether all that was there when it was opened has been read."""
        self._has_caught_up = False
        self._rechecked_at = 0.0
        self._told_at = 0.0
        self._first_kept: int | None = None
        """If lines that this reader has not had are no longer kept: the number of the first one that may be."""
        self._expiry: dict[str, Any] = {}
        """When such lines were removed, and the setting that says so."""

    @property
    def cursor(self) -> str:
        """Where the stream was opened, or how far it has read."""
        return (self._known if self._merge is None else self._merge.place).cursor

    @property
    def replays(self) -> asyncio.Lock:
        """For whoever passes on much of what was there: one after the other, page by page."""
        return self._pages.replays

    @property
    def offsets(self) -> dict[str, int]:
        """How far the output of each task was told that has not ended."""
        return self._outputs.offsets

    def __aiter__(self) -> AsyncIterator[Fed]:
        return self

    async def __anext__(self) -> Fed:
        while not self._ready:
            if self._is_done:
                raise StopAsyncIteration
            await self._fill()
        return self._next()

    async def batch(self, most: int = PAGE) -> list[Fed]:
        """What is there, at least one event: all that can be sent at once. Empty when the stream has ended."""
        while not self._ready:
            if self._is_done:
                return []
            await self._fill()
        self._told_at = monotonic()
        return [self._next() for _ in range(min(most, len(self._ready)))]

    def _next(self) -> Fed:
        fed = self._ready.popleft()
        return fed if self._show is None else Fed(fed.cursor, self._show(fed.event))

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

    async def _open(self) -> Merge:
        if self._merge is None:
            merge, followed = await self._database.read(self._begin)
            if self._is_following and not self._is_done:  # nothing was looked at yet: no signal is missed
                topics = [feed_topic(self._owner_id), *map(log_topic, self._asked), *(each.topic for each in followed)]
                self._subscription = self._signals.subscribe(*topics, with_news=True)
            self._outputs = Outputs(self._pages, followed)
            self._merge = merge
            if self._first_kept is not None:
                self._say(EventType.STREAM_EXPIRED, {"first": self._first_kept, "snapshot": self._expiry})
        return self._merge

    def _begin(self, connection: sa.Connection) -> tuple[Merge, list[followed_outputs.Output]]:
        place, bounds = Place(self._known.number), dict[SessionId, int]()
        for session_id, position in self._asked.items():
            row = sessions.get(connection, session_id, self._owner_id)
            if row is None:
                raise no_such_session(connection, session_id, self._owner_id)
            bounds[session_id] = row.last_event
            if position is None:
                position = NOW if self._begins_now else self._known.logs.get(session_id, 0)
            place.logs[session_id] = row.last_event if position == NOW else int(position)
        if self._begins_now:
            place.number = feed.last(connection, self._owner_id)
        removed = retention.removed_feed(connection)
        if place.number < removed:
            self._first_kept = removed + 1 if place.number else None
            self._expiry = expiry(retention.removed_feed_at(connection), "keep_feed")
            place.number = removed
        return Merge(place, bounds), followed_outputs.found(connection, self._owner_id, self._asked_outputs)

    async def _fill(self) -> None:
        merge = await self._open()
        if merge.is_idle and self._subscription is not None and self.is_live:
            await self._wait(merge, self._subscription)
            if self._is_done:
                return
        await self._look(merge)
        if self._is_done:
            return
        self._tell(merge.take(PAGE))
        if merge.is_idle:
            self._has_caught_up = True
            if not self._is_following:
                self._is_done = True
            elif not self.is_live:
                self.is_live = True
                if self._says_live:
                    self._say(EventType.STREAM_LIVE, {})
        if self._is_following:
            now = monotonic()
            for event in self._progress.due(now):
                self._ready.append(Fed(merge.place.cursor, event))
            for event in await self._outputs.due(now):
                self._ready.append(Fed(merge.place.cursor, event))

    async def _wait(self, merge: Merge, subscription: Subscription) -> None:
        """Until there may be something to tell."""
        due = [at for at in (self._progress.next_at, self._outputs.next_at) if at is not None]
        now = monotonic()
        burst = burst_seconds(self._signals.listeners(feed_topic(self._owner_id)))
        if now < self._told_at + burst:
            await asyncio.sleep(burst - now % burst)  # all readers of a feed until the same moment: they share one look
            now = monotonic()
        await subscription.wait(min([RECHECK_SECONDS, *(max(0.0, at - now) for at in due)]))
        heard, now = subscription.hear(), monotonic()
        if now >= self._rechecked_at + RECHECK_SECONDS:  # signals may be lost
            self._rechecked_at = now
            merge.all_is_stale()
            self._outputs.all_is_stale()
        if not heard.are_logs_whole:
            merge.all_is_stale()
        merge.brought(heard.news)
        merge.are_lines_stale = merge.are_lines_stale or feed_topic(self._owner_id) in heard.others
        self._outputs.heard(heard.others)

    async def _look(self, merge: Merge) -> None:
        """At all that is stale: the lines first. What could not be read stays stale."""
        if merge.are_lines_stale and not merge.lines:
            read = {id: log.known for id, log in merge.logs.items()}
            limit = PAGE
            lines = await self._pages.lines(self._owner_id, merge.known, limit)
            if self._has_caught_up and len(lines) == limit:
                await self._say_lagged(merge)
            merge.found_lines(lines, is_last=len(lines) < limit, read=read)
        limit = max(min(PAGE, _LEAST), PAGE // max(1, len(merge.logs)))
        for id, log in list(merge.logs.items()):
            if not log.is_stale or log.ready:
                continue
            page = await self._pages.page(id, self._owner_id, log.known, limit)
            expired = None
            if page is not None and log.known + 1 < page.first:
                expired = await self._expired(id, page.first)
            elif page is not None and self._has_caught_up and page.last - log.known > self._max_lag:
                self._has_caught_up = False
                position = merge.place.logs[id]
                self._say(EventType.STREAM_LAGGED, {"position": position, "behind": page.last - log.known}, id)
            merge.found_log(id, page, is_last=_is_last(page, limit), expired=expired)

    async def _say_lagged(self, merge: Merge) -> None:
        """If many lines wait: one look, and not again before it has caught up."""
        behind = await self._database.read(
            lambda connection: feed.behind(connection, self._owner_id, merge.known, self._max_lag)
        )
        if behind > self._max_lag:
            self._has_caught_up = False
            self._say(EventType.STREAM_LAGGED, {"position": merge.known, "behind": behind})

    async def _expired(self, session_id: SessionId, first: int) -> Event:
        """The log no longer has what comes next: say what it has, and go on from there."""

        def look(connection: sa.Connection) -> dict[str, Any]:
            row = sessions.get(connection, session_id, self._owner_id)
            if row is None:
                return {}
            gone = expiry(old_logs.removed_at(connection, session_id), "keep_events")
            return {"id": row.id, "title": row.title, "turn_id": row.turn_id, "is_held": row.is_held, **gone}

        shown = await self._database.read(look)
        return _control(EventType.STREAM_EXPIRED, {"first": first, "snapshot": shown}, session_id)

    def _say(self, type_: EventType, data: dict[str, Any], session_id: SessionId | None = None) -> None:
        self._ready.append(Fed(self.cursor, _control(type_, data, session_id)))

    def _tell(self, told: Sequence[Fed]) -> None:
        if not self._is_following:
            self._ready.extend(told)
            return
        now = monotonic()
        for fed in told:
            if fed.event.session_id in self._asked or self._progress.admits(fed.event, now):
                self._ready.append(fed)


def burst_seconds(readers: int) -> float:
    """How long a feed of so many readers waits for more to tell after it has told them something."""
    return BURST_SECONDS + min(_LONGEST_BURST, readers * _READER_SECONDS)


def _is_last(page: Page | None, limit: int) -> bool:
    return page is None or len(page.events) < limit


def _control(type_: EventType, data: dict[str, Any], session_id: SessionId | None) -> Event:
    return Event(session_id or SessionId(""), None, type_.value, datetime.now(UTC), data)
