"""Time in a test of schedules: moved to the next fire, on a clock that otherwise stands still."""

import asyncio
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from outlast.clock import ManualClock
from outlast.events.signals import SCHEDULES
from outlast.store.repositories import schedules
from outlast.store.unit import Unit

if TYPE_CHECKING:
    from outlast.runtime import Outlast

_PATIENCE_SECONDS = 20.0
_LOOK_SECONDS = 0.01


async def next_fire(outlast: "Outlast[Any, Any]", clock: ManualClock, *, late_by: timedelta = timedelta()) -> datetime:
    """Move the clock to the next time of all schedules, or past it; returns when it is decided what becomes of it.

    For `Outlast(agent, clock=clock)` on SQLite. Gives the time that was due. Raises `LookupError` if none is.
    """
    seconds = await _seconds_to_next(outlast, clock)
    if seconds is None:
        raise LookupError("No schedule is due: make one first, or resume the one that is paused.")
    due_at = clock.now() + timedelta(seconds=seconds)
    clock.advance(max(timedelta(), due_at + late_by - clock.now()))
    async with asyncio.timeout(_PATIENCE_SECONDS):
        seconds = 0.0
        while seconds is not None and seconds <= 0:
            await outlast.database.transaction(_signal_again, name="schedules.look")
            await asyncio.sleep(_LOOK_SECONDS)
            seconds = await _seconds_to_next(outlast, clock)
    return due_at


async def _seconds_to_next(outlast: "Outlast[Any, Any]", clock: ManualClock) -> float | None:
    return await outlast.database.read(partial(schedules.seconds_to_next, now=clock.now()))


def _signal_again(unit: Unit) -> None:
    unit.signal(SCHEDULES)
