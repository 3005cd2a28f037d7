"""A stream: replay from any position, then follow. Complete, in order, nothing twice, at any length.

A reader pulls pages; little is queued for it, so a slow one costs nobody anything. One that has caught up takes what
the signal of a commit brings along, if that begins where it stands. One that falls far
behind while following is told so (`stream.lagged`) and goes on from the store; one that asks for what is
no longer kept is told what is (`stream.expired`) and goes on from there. The last event of a session that is
deleted is `session.deleted`: the stream ends after it.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol, Self

from outlast.errors import NotFound
from outlast.events.event import Event
from outlast.events.news import News
from outlast.events.signals import Signals, Subscription, log_topic
from outlast.events.types import EventType
from outlast.ids import SessionId

PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Page:
    """Events after a position, with the bounds of the log at the moment of reading."""

    events: list[Event]
    first: int
    last: int


class PageReader(Protocol):
    def __call__(self, session_id: SessionId, after: int, limit: int) -> Awaitable[Page | None]:
        """The next page; None when the session is not there (any more).

        Whoever reads already may go on to the end of the log of a session that is being deleted.
        """
        ...


class EventStream:
    """An async iterator over a session's events. Use it in `async with`, or close it when you leave early."""

    def __init__(
        self,
        read: PageReader,
        signals: Signals,
        session_id: SessionId,
        *,
        after: int = 0,
        known: Sequence[Event] = (),
        is_following: bool = True,
        until: Callable[[Event], bool] | None = None,
        max_lag: int = 10_000,
        snapshot: Callable[[], Awaitable[dict[str, Any]]] | None = None,
        show: Callable[[Event], Event] | None = None,
        wants: Callable[[Event], bool] | None = None,
    ) -> None:
        """`show`: an event as this reader may see it. `wants`: which ones it is given; it passes the others."""
        self.position = after
        self._read = read
        self._session_id = session_id
        self._is_following = is_following
        self._until = until
        self._max_lag = max_lag
        self._snapshot = snapshot
        self._show = show
        self._wants = wants
        self._ready: deque[Event] = deque(known)
        """First, those that follow `after` and need not be read."""
        self._has_begun = bool(known)
        self._has_caught_up = False
        self._is_at_end = False
        self._is_done = False
        self._subscription: Subscription | None = (
            signals.subscribe(log_topic(session_id), with_news=True) if is_following else None
        )

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        event = await self._next()
        while self._wants is not None and not self._wants(event):
            event = await self._next()
        return event if self._show is None else self._show(event)

    async def _next(self) -> Event:
        while not self._ready:
            if self._is_done:
                raise StopAsyncIteration
            await self._fill()
        event = self._ready.popleft()
        if event.number is not None:
            self.position = event.number
        is_last = event.type == EventType.SESSION_DELETED
        if is_last or (self._until is not None and self._until(event)):
            await self.aclose()
        return event

    async def batch(self, most: int = PAGE) -> list[Event]:
        """What is there, at least one event: all that can be sent at once. Empty when the stream has ended."""
        try:
            events = [await anext(self)]
        except StopAsyncIteration:
            return []
        while self._ready and len(events) < most:
            event = await self._next()
            if self._wants is None or self._wants(event):
                events.append(event if self._show is None else self._show(event))
        return events

    async def aclose(self) -> None:
        self._is_done = True
        self._ready.clear()
        self._subscription = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _fill(self) -> None:
        signals = self._subscription
        if self._is_at_end and signals is not None:
            await signals.wait()
            if self._is_done or self._take(signals.take()):
                return
            self._is_at_end = False  # a reader that asks again after a failed look must not wait for another signal
        page = await self._read(self._session_id, self.position, PAGE)
        if self._is_done:
            return
        if page is None:
            self._is_done = True
            if not self._has_begun:
                raise NotFound("There is no such session.", id=self._session_id)
            # It was there, and its log went before this reader came to the end of it.
            self._ready.append(self._control(EventType.SESSION_DELETED, {}))
            return
        self._has_begun = True
        if self.position + 1 < page.first:
            await self._say_expired(page)
        elif self._has_caught_up and page.last - self.position > self._max_lag:
            self._has_caught_up = False
            self._ready.append(
                self._control(EventType.STREAM_LAGGED, {"position": self.position, "behind": page.last - self.position})
            )
        self._ready.extend(page.events)
        self._is_at_end = not page.events or page.events[-1].number == page.last
        self._has_caught_up = self._has_caught_up or self._is_at_end
        if self._is_at_end and self._subscription is None:
            self._is_done = True

    def _take(self, brought: Sequence[News]) -> bool:
        """Whether the signals brought all that follows this reader's position: then nothing needs to be read."""
        found: list[Event] = []
        position = self.position
        for news in brought:
            if news.after > position:
                return False
            if news.last > position:
                found += [event for event in news.events if event.number is not None and event.number > position]
                position = news.last
        if position - self.position > self._max_lag:
            return False
        self._ready.extend(found)
        return bool(brought)

    async def _say_expired(self, page: Page) -> None:
        snapshot = await self._snapshot() if self._snapshot is not None else {}
        self._ready.append(self._control(EventType.STREAM_EXPIRED, {"first": page.first, "snapshot": snapshot}))
        self.position = page.first - 1

    def _control(self, type_: EventType, data: dict[str, Any]) -> Event:
        return Event(self._session_id, None, type_.value, datetime.now(UTC), data)
