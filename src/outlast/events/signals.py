"""Signals: hints to look. They carry no fact and may be lost; whoever waits looks again by itself."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol
from weakref import WeakSet

from outlast.ids import InputId, SessionId, TurnId

RECHECK_SECONDS = 2.0
"""How long a waiter trusts silence before it looks again."""


def log_topic(session_id: SessionId) -> str:
    return f"log:{session_id}"


def turn_topic(turn_id: TurnId) -> str:
    """For whoever runs the turn: something was asked of it."""
    return f"turn:{turn_id}"


def end_topic(turn_id: TurnId) -> str:
    """For whoever waits for the turn's end."""
    return f"end:{turn_id}"


def input_topic(input_id: InputId) -> str:
    """For whoever waits until the input is delivered or removed."""
    return f"input:{input_id}"


class Subscription:
    """Remembers that a signal came until it is waited for."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        self._event.set()

    async def wait(self, seconds: float = RECHECK_SECONDS) -> None:
        """Until a signal comes or the time has passed: look again either way."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
        self._event.clear()


class Signals(Protocol):
    def subscribe(self, topic: str) -> Subscription:
        """Held by whoever waits: a subscription that nobody keeps is gone."""
        ...

    def publish(self, topics: Iterable[str]) -> None: ...


class LocalSignals:
    """Within this process, on its event loop."""

    def __init__(self) -> None:
        self._by_topic: dict[str, WeakSet[Subscription]] = {}

    def subscribe(self, topic: str) -> Subscription:
        subscription = Subscription()
        self._by_topic.setdefault(topic, WeakSet()).add(subscription)
        return subscription

    def publish(self, topics: Iterable[str]) -> None:
        for topic in topics:
            found = self._by_topic.get(topic)
            if found is None:
                continue
            if not found:
                del self._by_topic[topic]
                continue
            for subscription in found:
                subscription.notify()
