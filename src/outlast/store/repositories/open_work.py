"""How much work is open: what operators look at first."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from outlast.clock import from_microseconds
from outlast.store.tables import tasks, turns


@dataclass(frozen=True, slots=True)
class OpenWork:
    """Counts by state, over all owners, of what has not ended."""

    turns: Mapping[str, int]
    tasks: Mapping[str, int]
    oldest_queued_seconds: float


def open_work(connection: sa.Connection, now: datetime) -> OpenWork:
    def by_state(table: sa.Table) -> dict[str, int]:
        counts = sa.select(table.c.state, sa.func.count()).where(table.c.ended_at.is_(None)).group_by(table.c.state)
        return {row[0]: row[1] for row in connection.execute(counts)}

    oldest = connection.execute(
        sa.select(sa.func.min(turns.c.created_at)).where(
            turns.c.ended_at.is_(None), turns.c.state == "queued", turns.c.not_before.is_(None)
        )
    ).scalar_one()
    waited = 0.0 if oldest is None else max(0.0, (now - from_microseconds(oldest)).total_seconds())
    return OpenWork(by_state(turns), by_state(tasks), waited)
