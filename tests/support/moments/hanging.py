"""A turn that hangs before it begins, and waits that only a signal ends: who must be told is told, or hangs."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from outlast import TurnContext
from outlast.events.signals import Subscription


@asynccontextmanager
async def hanging_deps(context: TurnContext) -> AsyncGenerator[None]:
    """They never open."""
    await asyncio.Event().wait()
    yield None


def wait_only_for_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks again by himself, as everybody else does every few seconds."""
    monkeypatch.setattr(Subscription.wait, "__defaults__", (3_600.0,))
