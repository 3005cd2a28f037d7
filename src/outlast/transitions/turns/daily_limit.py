"""The daily stop: an owner whose known cost has reached the limit starts no turn before the next midnight UTC."""

import math
from datetime import datetime, timedelta

from outlast.errors import LimitReached
from outlast.store.repositories import spending
from outlast.store.unit import Unit


def next_midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


def closed_until(unit: Unit, owner_id: str, limit: int | None) -> datetime | None:
    """When the owner's next turn may start, if the limit is reached; None when it may start now."""
    if limit is None or spending.known_on(unit.connection, owner_id, unit.now.date()) < limit:
        return None
    return next_midnight(unit.now)


def check(unit: Unit, owner_id: str, limit: int | None) -> None:
    """Refuse what a person asks for while the owner is at the limit."""
    until = closed_until(unit, owner_id, limit)
    if until is not None:
        raise refusal(unit.now, until)


def refusal(now: datetime, until: datetime) -> LimitReached:
    return LimitReached(
        f"The daily limit is reached: try again after {until:%Y-%m-%d %H:%M} UTC.",
        reset_at=until.isoformat(),
        retry_after=math.ceil((until - now).total_seconds()),
    )
