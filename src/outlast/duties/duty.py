"""A duty: work that recurs. Every engine runs them; in a cluster, what concerns everybody is done by one worker."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog

from outlast.errors import StoreUnavailable
from outlast.values.redact import error_chain

log = structlog.get_logger("outlast.duties")

EVERY = timedelta(seconds=5)
"""How often to look for what was left half done."""


@dataclass(frozen=True, slots=True)
class Duty:
    """`run` may fail, and is run again after `every`, counted from its end."""

    name: str
    run: Callable[[], Awaitable[object]]
    every: timedelta
    is_shared: bool = True
    """It is about the whole database. Else about what this worker itself runs: then every worker does it."""
    wait: Callable[[], Awaitable[object]] | None = None
    """In place of `every`: returns when there may be something to do, and never fails."""


async def _alone() -> bool:
    return True


class DutyRunner:
    """Owned by an engine. `leads`: whether this worker is the one that does what is shared, asked before each time."""

    def __init__(self, duties: Sequence[Duty], *, leads: Callable[[], Awaitable[bool]] = _alone) -> None:
        self._duties = duties
        self._leads = leads
        self._running: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._running = {asyncio.create_task(self._repeat(each), name=f"duty: {each.name}") for each in self._duties}

    async def close(self) -> None:
        for each in self._running:
            each.cancel()
        if self._running:
            await asyncio.wait(self._running)

    async def _repeat(self, duty: Duty) -> None:
        while True:
            await (asyncio.sleep(duty.every.total_seconds()) if duty.wait is None else duty.wait())
            try:
                if not duty.is_shared or await self._leads():
                    await duty.run()
            except StoreUnavailable as exc:
                log.info("a duty waits for the store", duty=duty.name, error=str(exc))
            except Exception as exc:
                log.error("a duty failed; it is tried again", duty=duty.name, exception=error_chain(exc))
