"""Schedules that are due: fired when the time of the next one comes, or one was made or changed.

Nothing is polled: between two looks there is one timer, to the next time of all. Any worker may fire what it finds; the
transaction that does lets each time be decided once.
"""

from collections.abc import Awaitable, Callable
from functools import partial

import sqlalchemy as sa
import structlog

from outlast.clock import Clock
from outlast.duties.duty import EVERY
from outlast.errors import InvalidInput, StoreUnavailable
from outlast.events.signals import SCHEDULES, Signals
from outlast.store.database import Database
from outlast.store.repositories import fires, pauses, schedules
from outlast.store.repositories.schedules import Schedule
from outlast.store.sql.statement import Row
from outlast.transitions.schedules import firing
from outlast.values.redact import error_chain

log = structlog.get_logger("outlast.schedules")

_LONGEST_SECONDS = EVERY.total_seconds()
"""A signal may be lost, and a clock be set: then this is how late it is noticed."""
_SOON_SECONDS = 0.25
_NOT_MINE_SECONDS = 1.0
_TOGETHER = 50

BROKEN = "broken"
"""The reason of one whose expression or zone is not known any more, after an upgrade of either."""

Orphan = Callable[[Schedule], Awaitable[str | None]]
"""Why a schedule cannot do what it was made for; None if it can."""


class DueSchedules:
    """Owned by the engine's duties: `wait` until something may be due, then `fire`."""

    def __init__(self, database: Database, signals: Signals, clock: Clock, orphan: Orphan) -> None:
        self._database = database
        self._clock = clock
        self._orphan = orphan
        self._subscription = signals.subscribe(SCHEDULES)
        self._least = 0.0
        """Seconds that are waited at least: nothing was decided about what is due."""

    async def wait(self) -> None:
        seconds = _LONGEST_SECONDS
        try:
            found = await self._database.read(self._seconds_to_next, is_single=True)
            seconds = seconds if found is None else min(max(found, self._least), seconds)
        except StoreUnavailable:
            pass
        except Exception as exc:
            log.error("the next schedule cannot be found; it is tried again", exception=error_chain(exc))
        self._least = _NOT_MINE_SECONDS  # unless this worker is the one that fires
        await self._subscription.wait(seconds)

    def _seconds_to_next(self, connection: sa.Connection) -> float | None:
        return schedules.seconds_to_next(connection, self._clock.now())

    async def fire(self) -> None:
        """Fire what is due, and what waited for the end of an earlier fire."""
        self._least = _SOON_SECONDS
        if await self._database.read(pauses.find, is_single=True) is not None:
            self._least = _LONGEST_SECONDS
            return
        is_all = True
        for row in await self._database.transaction(partial(schedules.due, limit=_TOGETHER), name="schedules.due"):
            is_all &= await self._alone(row["id"], partial(self._fire, row))
        for each in await self._database.read(fires.with_queued, is_single=True):
            queued = partial(firing.fire_queued, seen=each)
            await self._alone(each.id, partial(self._database.transaction, queued, name="schedule.fire_queued"))
        if is_all:
            self._least = 0.0

    async def _fire(self, row: Row) -> bool:
        """Whether it was decided about. One whose times cannot be found any more is paused and says so."""
        seen = schedules.from_row(row)
        fire = partial(firing.fire_due, seen=seen, orphan=await self._orphan(seen))
        try:
            return await self._database.transaction(fire, name="schedule.fire")
        except InvalidInput as exc:
            log.error("a schedule has no times any more; it is paused", schedule_id=seen.id, error=exc.message)
            broken = partial(firing.fire_due, seen=seen, orphan=BROKEN)
            return await self._database.transaction(broken, name="schedule.fire")

    async def _alone(self, schedule_id: str, fire: Callable[[], Awaitable[object]]) -> bool:
        """Whatever is wrong with one holds up no other."""
        try:
            return bool(await fire())
        except StoreUnavailable:
            raise
        except Exception as exc:
            log.error("a schedule cannot be fired", schedule_id=schedule_id, exception=error_chain(exc))
            return False
