"""A turn's dependencies, kept open while calls of that turn are parked."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import structlog

from outlast.containment import as_error
from outlast.values.redact import last_line

log = structlog.get_logger("outlast.turns")


class DepsLease:
    """Opened for a turn; closed when the turn and every call that shares it are over.

    One keeper enters and leaves the context, so that leaving can happen after the turn's own coroutine.
    """

    def __init__(self, make: Callable[[], AbstractAsyncContextManager[Any]] | None) -> None:
        """`make` is the program's own: it is called when the dependencies are opened, and may fail as they may."""
        self._make = make
        self._users = 1
        self._idle = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    async def open(self) -> Any:
        if self._make is None:
            return None
        ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._keeping = asyncio.create_task(self._keep(self._make, ready), name="deps keeper")
        try:
            return await ready
        finally:
            if ready.cancelled():
                self._keeping.cancel()  # what hangs there would hold up whoever stopped the turn

    def share(self) -> None:
        """One more uses it, until it lets go of it."""
        self._users += 1

    def _release(self) -> None:
        self._users -= 1
        if self._users == 0:
            self._idle.set()

    async def let_go(self) -> None:
        """Let go of it; the last one waits for the context to be left."""
        self._release()
        if self._keeping is not None and self._users == 0:
            await asyncio.wait({self._keeping})

    async def _keep(self, make: Callable[[], AbstractAsyncContextManager[Any]], ready: asyncio.Future[Any]) -> None:
        try:
            async with make() as value:
                ready.set_result(value)
                await self._idle.wait()
        except asyncio.CancelledError:
            if ready.done():
                raise
            ready.set_exception(RuntimeError("the deps cancelled their own opening"))
        except BaseException as exc:
            if ready.done():
                log.error("the deps of a turn did not close cleanly", error=last_line(as_error(exc)))
            else:
                ready.set_exception(as_error(exc))
