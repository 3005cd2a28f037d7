"""Signals: hints to look. They may be lost; whoever waits looks again by itself. Some bring along what there is."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol
from weakref import ref

from outlast.events.news import News
from outlast.ids import InputId, KeyId, OwnerId, SessionId, TaskId, TurnId

RECHECK_SECONDS = 2.0
"""How long a waiter trusts silence before it looks again."""
_LOG = "log:"
_MOST_LINES = 64
"""What is kept for a slow reader; one that has more to read looks at the database."""


SCHEDULES = "schedules"
"""For whoever fires schedules: one was made or changed."""


def log_topic(session_id: SessionId) -> str:
    return f"{_LOG}{session_id}"


def turn_topic(turn_id: TurnId) -> str:
    """For whoever runs the turn: something was asked of it."""
    return f"turn:{turn_id}"


def end_topic(turn_id: TurnId) -> str:
    """For whoever waits for the turn's end."""
    return f"end:{turn_id}"


def input_topic(input_id: InputId) -> str:
    """For whoever waits until the input is delivered or removed."""
    return f"input:{input_id}"


def task_topic(task_id: TaskId) -> str:
    return f"task:{task_id}"


def output_topic(session_id: SessionId, output_id: str) -> str:
    """For whoever follows the output of a call."""
    return f"output:{session_id}:{output_id}"


def feed_topic(owner_id: OwnerId) -> str:
    """For whoever follows all that happens to an owner's sessions."""
    return f"feed:{owner_id}"


def connection_topic(owner_id: OwnerId) -> str:
    """For whoever waits for a connection of an owner: one was set or removed."""
    return f"connection:{owner_id}"


def key_topic(key_id: KeyId) -> str:
    """For whoever reads on because a key once let them in."""
    return f"key:{key_id}"


@dataclass(frozen=True, slots=True)
class Heard:
    """What came to a subscription since it was last asked."""

    news: Sequence[News]
    """Of logs, in order."""
    are_logs_whole: bool
    """Whether the news are all that happened to the logs."""
    others: Collection[str]
    """Topics of other kinds that were signalled."""


class Subscription:
    """Remembers that a signal came until it is waited for, and what it brought until that is taken."""

    def __init__(self, *, with_news: bool = False) -> None:
        self._event = asyncio.Event()
        self._with_news = with_news
        self._news: list[News] = []
        self._others: set[str] = set()
        self._room = _MOST_LINES

    def notify(self, news: News | None = None, *, topic: str | None = None) -> None:
        """`topic`: one of another kind than logs."""
        if self._with_news:
            if topic is None:
                self._keep(news)
            else:
                self._others.add(topic)
        self._event.set()

    def _keep(self, news: News | None) -> None:
        """Until all is taken: once something is missing, what comes after it is of no use."""
        self._room -= _MOST_LINES + 1 if news is None else len(news.lines)
        if news is not None and self._room >= 0:
            self._news.append(news)
        else:
            self._news.clear()

    def take(self) -> Sequence[News]:
        """All that came since the last time, in order. Empty: look at the database."""
        return self.hear().news

    def hear(self) -> Heard:
        """All that came since the last time."""
        heard = Heard(self._news, self._room >= 0, self._others)
        self._news, self._room, self._others = [], _MOST_LINES, set()
        return heard

    async def wait(self, seconds: float | None = None) -> None:
        """Until a signal comes or the time has passed: look again either way. `RECHECK_SECONDS` if none is given."""
        if self._event.is_set():
            self._event.clear()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(RECHECK_SECONDS if seconds is None else seconds):
                await self._event.wait()
        self._event.clear()


class Signals(Protocol):
    def subscribe(self, *topics: str, with_news: bool = False) -> Subscription:
        """Held by whoever waits: a subscription that nobody keeps is gone."""
        ...

    def listeners(self, topic: str) -> int:
        """How many subscriptions of this process hear it."""
        ...

    def watch(self, topic: str, look: Callable[[], None]) -> Callable[[], None]:
        """Call `look` at each signal; gives the way to end that."""
        ...

    def publish(self, topics: Iterable[str], news: Sequence[News] = ()) -> None:
        """`news` are of logs among the topics, for readers in this process."""
        ...


class LocalSignals:
    """Within this process, on its event loop."""

    def __init__(self) -> None:
        self._by_topic: dict[str, set[ref[Subscription]]] = {}
        self._watchers: dict[str, set[Callable[[], None]]] = {}

    def subscribe(self, *topics: str, with_news: bool = False) -> Subscription:
        subscription = Subscription(with_news=with_news)

        def forget(gone: ref[Subscription]) -> None:
            for topic in topics:
                held = self._by_topic.get(topic, set())
                held.discard(gone)
                if not held:
                    self._by_topic.pop(topic, None)

        known = ref(subscription, forget)
        for topic in topics:
            self._by_topic.setdefault(topic, set()).add(known)
        return subscription

    def listeners(self, topic: str) -> int:
        return len(self._by_topic.get(topic, ()))

    def watch(self, topic: str, look: Callable[[], None]) -> Callable[[], None]:
        self._watchers.setdefault(topic, set()).add(look)

        def end() -> None:
            found = self._watchers.get(topic, set())
            found.discard(look)
            if not found:
                self._watchers.pop(topic, None)

        return end

    def publish(self, topics: Iterable[str], news: Sequence[News] = ()) -> None:
        self.announce(topics, news)

    def notice(self, topics: Iterable[str]) -> tuple[str, str] | None:
        """A channel, and what a commit can say there to tell other processes in place of `publish`."""
        return None

    def announce(self, topics: Iterable[str], news: Sequence[News] = ()) -> None:
        """To whoever waits in this process."""
        brought = {log_topic(each.session_id): each for each in news}
        for topic in topics:
            for look in tuple(self._watchers.get(topic, ())):
                look()
            for each in tuple(self._by_topic.get(topic, ())):
                subscription = each()
                if subscription is not None:
                    subscription.notify(brought.get(topic), topic=None if topic.startswith(_LOG) else topic)

    def recheck(self) -> None:
        """Signals may have been lost: everybody looks."""
        self.announce([*self._watchers, *self._by_topic])
