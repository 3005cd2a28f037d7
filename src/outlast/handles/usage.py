"""What an owner has used, and how much of its limit that is."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from outlast.ids import OwnerId
from outlast.store.database import Database
from outlast.store.repositories import spending
from outlast.store.repositories.spending import Spent
from outlast.transitions.turns.daily_limit import next_midnight


@dataclass(frozen=True, slots=True)
class UsageReport:
    """An owner's use today and this week, in UTC."""

    owner_id: OwnerId
    today: Spent
    week: Spent
    """Since Monday."""
    limit_microdollars: int | None
    """What may be spent in a day; None: there is no limit."""
    percent: int | None
    """How much of the limit today's known cost is, rounded down and at most 100; None without a limit."""
    resets_at: datetime
    """The next midnight: a new day, and turns start again if they were stopped."""
    week_resets_at: datetime

    @property
    def is_at_limit(self) -> bool:
        return self.percent is not None and self.percent >= 100


async def report(database: Database, owner_id: OwnerId, *, now: datetime, limit: int | None) -> UsageReport:
    day = now.date()
    monday = day - timedelta(days=day.weekday())

    def read(connection: sa.Connection) -> tuple[Spent, Spent]:
        return spending.between(connection, owner_id, day, day), spending.between(connection, owner_id, monday, day)

    today, week = await database.read(read)
    percent = None
    if limit is not None:
        percent = min(100, today.known_microdollars * 100 // limit) if limit else 100
    midnight = next_midnight(now)
    next_monday = midnight + timedelta(days=6 - day.weekday())
    return UsageReport(owner_id, today, week, limit, percent, midnight, next_monday)
