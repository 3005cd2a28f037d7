"""A client of a stream that reads in the background, and what it was told."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.support.network.server import Frame, frames

_ACCEPT = {"Accept": "text/event-stream"}


@dataclass
class SseReader:
    """One connection that is never made again: a stream that breaks off ends it too early."""

    told: list[Frame] = field(default_factory=list[Frame])
    is_over: bool = False
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def until(self, holds: Callable[[list[Frame]], bool], *, seconds: float = 30) -> None:
        """Wait until this holds of what was told; fails when the stream has ended without it."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(lambda: holds(self.told) or self.is_over)
        assert holds(self.told), f"the stream ended after {self.told[-3:]}"

    @property
    def events(self) -> list[dict[str, Any]]:
        return [each.data for each in self.told]

    async def read(self, client: httpx2.AsyncClient, path: str) -> None:
        try:
            async with client.stream("GET", path, headers=_ACCEPT) as response:
                assert response.status_code == 200, await response.aread()
                async for each in frames(response):
                    await self._tell(each)
        finally:
            self.is_over = True
            async with self._changed:
                self._changed.notify_all()

    async def _tell(self, frame: Frame) -> None:
        self.told.append(frame)
        async with self._changed:
            self._changed.notify_all()


@asynccontextmanager
async def reading(client: httpx2.AsyncClient, path: str) -> AsyncGenerator[SseReader]:
    reader = SseReader()
    running = asyncio.create_task(reader.read(client, path), name=f"read {path}")
    try:
        yield reader
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
