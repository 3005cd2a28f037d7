"""An exact place in running code at which a test looks, or acts, before it goes on."""

import asyncio


class Checkpoint:
    """Code that calls it waits there until `open`. It stays open: later callers pass."""

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._opened = asyncio.Event()

    async def __call__(self) -> None:
        self._reached.set()
        await self._opened.wait()

    async def reached(self) -> None:
        """Wait until somebody stands at this place."""
        await self._reached.wait()

    def open(self) -> None:
        self._opened.set()
