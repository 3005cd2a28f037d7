"""Noticing that the event loop stands still, and naming the code that holds it."""

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager

import structlog

from outlast.clock import monotonic

log = structlog.get_logger("outlast.loop")

STALL_SECONDS = 1.0
_BEAT_SECONDS = 0.25
_BY_A_TOOL = "this tool blocks it; make it `def` instead of `async def`, or await"
_BY_NOBODY = "something blocks it outside of a tool, or the machine is too busy"


@contextmanager
def watching_for_stalls(
    when_stalled: Callable[[], None] = lambda: None, *, longest: float = STALL_SECONDS
) -> Generator[None]:
    """While this is open, a stall longer than that is logged once, with what ran and where it stood.

    It is watched from a thread: a loop that stands still cannot say so itself.
    """
    loop = asyncio.get_running_loop()
    watch = _Watch(loop, threading.get_ident(), when_stalled, longest)
    watch.beat()
    thread = threading.Thread(target=watch.observe, name="outlast-stalls", daemon=True)
    thread.start()
    try:
        yield
    finally:
        watch.end()
        thread.join()


class _Watch:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, thread_id: int, when_stalled: Callable[[], None], longest: float
    ) -> None:
        self._loop = loop
        self._thread_id = thread_id
        self._when_stalled = when_stalled
        self._longest = longest
        self._beat_every = min(_BEAT_SECONDS, longest / 4)
        self._last = monotonic()
        self._next: asyncio.TimerHandle | None = None
        self._over = threading.Event()

    def beat(self) -> None:
        self._last = monotonic()
        self._next = self._loop.call_later(self._beat_every, self.beat)

    def end(self) -> None:
        self._over.set()
        if self._next is not None:
            self._next.cancel()

    def observe(self) -> None:
        told_of = 0.0
        while not self._over.wait(self._beat_every):
            last = self._last
            if monotonic() - last > self._longest and told_of != last:
                told_of = last
                self._report(monotonic() - last)

    def _report(self, seconds: float) -> None:
        running = asyncio.current_task(self._loop)
        frame = sys._current_frames().get(self._thread_id)  # pyright: ignore[reportPrivateUsage]
        where = traceback.format_stack(frame)[-1].strip() if frame is not None else ""
        name = "" if running is None else running.get_name()
        tool = name.split(" ")[1] if name.startswith("call ") else None
        log.warning(
            f"the event loop stands still: {_BY_NOBODY if tool is None else _BY_A_TOOL}",
            seconds=round(seconds, 1),
            running=name,
            tool=tool,
            where=where,
        )
        self._when_stalled()
