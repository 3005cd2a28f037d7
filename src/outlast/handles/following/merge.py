"""The lines of a feed and the logs that were asked for, as one sequence.

Lines and logs are looked at one after the other and may be of different moments. So that no log is ahead of the feed
by a change of state, one that is found in a log waits until its line is found as well.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from outlast.events.event import Event
from outlast.events.news import News
from outlast.events.stream import Page
from outlast.events.types import FED, EventType
from outlast.handles.following.place import Place
from outlast.ids import SessionId
from outlast.store.repositories.feed import Line


class Fed(NamedTuple):
    """An event, and the cursor to resume from after it."""

    cursor: str
    event: Event


@dataclass(slots=True)
class Log:
    """What was read of a log and is not told yet."""

    known: int
    """The number up to which it was read."""
    bound: int
    """Of changes of state up to this number, the feed has told or will tell nothing any more."""
    ready: deque[Event] = field(default_factory=deque[Event])
    has_more: bool = True
    is_stale: bool = False

    @property
    def is_done(self) -> bool:
        return not (self.ready or self.is_stale or self.has_more)


class Merge:
    """Where a reader is, and what it is told next. What is stale must be looked at: the lines first, then the logs."""

    def __init__(self, place: Place, bounds: dict[SessionId, int]) -> None:
        """`bounds`: the last event of each log, not later than the first look at the feed."""
        self.place = place
        self.logs = {id: Log(number, bounds[id]) for id, number in place.logs.items()}
        self.lines: deque[Line] = deque()
        self.known = place.number
        """The number up to which the feed was read."""
        self.are_lines_stale = True

    @property
    def is_idle(self) -> bool:
        """Nothing more to tell or to look at until something happens."""
        return not (self.are_lines_stale or self.lines) and all(each.is_done for each in self.logs.values())

    def all_is_stale(self) -> None:
        self.are_lines_stale = True
        for log in self.logs.values():
            log.is_stale = True

    def found_lines(self, lines: Sequence[Line], *, is_last: bool, read: dict[SessionId, int]) -> None:
        """`read`: how far each log was known before this look."""
        self.lines.extend(lines)
        if lines:
            self.known = lines[-1].number
        self.are_lines_stale = not is_last
        if is_last:
            for id, number in read.items():
                if id in self.logs:
                    self.logs[id].bound = max(self.logs[id].bound, number)

    def found_log(self, id: SessionId, page: Page | None, *, is_last: bool, expired: Event | None = None) -> None:
        """`page` None: the log is gone, and the feed alone tells of its session."""
        log = self.logs[id]
        if page is None:
            del self.logs[id], self.place.logs[id]
            return
        if expired is not None:
            log.ready.append(expired)
        log.ready.extend(page.events)
        last = [page.events[-1].number or 0] if page.events else []
        log.known = max([log.known, page.first - 1, *last, *([page.last] if is_last else [])])
        log.has_more, log.is_stale = not is_last, False

    def brought(self, news: Iterable[News]) -> None:
        """By signals, to logs that were read to their ends."""
        for each in news:
            log = self.logs.get(each.session_id)
            if log is None or each.last <= log.known:
                continue
            if each.after > log.known or log.has_more or log.is_stale:
                log.is_stale = True
                continue
            log.ready.extend(event for event in each.events if event.number is not None and event.number > log.known)
            log.known = each.last

    def take(self, most: int) -> list[Fed]:
        """What can be told without another look."""
        told: list[Fed] = []
        while self.lines and len(told) < most:
            line = self.lines[0]
            log = self.logs.get(line.session_id)
            if log is not None and not self._log_until(line, log, told, most):
                return told
            self.lines.popleft()
            self.place.number = line.number
            if log is not None:
                log.bound = max(log.bound, line.event_number)
            elif (event := line.event) is not None:
                told.append(Fed(self.place.cursor, event))
            elif line.type == EventType.SESSION_DELETED:
                gone = Event(line.session_id, line.event_number, line.type, line.at, {})
                told.append(Fed(self.place.cursor, gone))
        if not (self.lines or self.are_lines_stale):
            self._rests(told, most)
        return told

    def _log_until(self, line: Line, log: Log, told: list[Fed], most: int) -> bool:
        """Tell a log up to the event of a line; False when there is no room, or more must be read."""
        end = line.event_number
        if self.place.logs[line.session_id] >= end:
            return True
        while log.ready and (log.ready[0].number or 0) <= end:
            if len(told) >= most:
                return False
            if log.ready[0].number == end:
                self.place.number = line.number
            self._tell(line.session_id, log, told)
        if log.ready or log.known >= end:
            return True
        log.is_stale = True
        return False

    def _rests(self, told: list[Fed], most: int) -> None:
        """What the logs have after the last change of state: words and calls of a running turn."""
        for id, log in self.logs.items():
            while log.ready and len(told) < most:
                event = log.ready[0]
                if event.type in FED and (event.number or 0) > log.bound:
                    self.are_lines_stale = True
                    break
                self._tell(id, log, told)
            if not log.ready and log.has_more:
                log.is_stale = True

    def _tell(self, id: SessionId, log: Log, told: list[Fed]) -> None:
        event = log.ready.popleft()
        if event.number is not None:
            self.place.logs[id] = event.number
        elif event.type == EventType.STREAM_EXPIRED:
            self.place.logs[id] = event.data["first"] - 1
        told.append(Fed(self.place.cursor, event))
