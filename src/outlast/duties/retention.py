"""Retention: what is kept for a time only is removed beside the work, a little at a time; nobody waits for it.

Nothing that runs, waits or is needed is touched: output only of tasks that have ended, deliveries that have ended,
fires that came to something. Sessions, their messages and their event logs are kept until somebody deletes them.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import structlog

from outlast.store.database import Database
from outlast.store.repositories import creations, retention
from outlast.store.unit import Unit

log = structlog.get_logger("outlast.retention")

EVERY = timedelta(minutes=10)
_BATCH = 200
_PAUSE = 0.02
"""Seconds between two transactions: others come first."""
_MOST = 500
"""Transactions in one run of the duty; the next run goes on."""

Remove = Callable[[Unit, datetime], int]


@dataclass(frozen=True, slots=True)
class Kept:
    """How long each kind is kept; None: for ever."""

    output: timedelta | None = timedelta(days=30)
    feed: timedelta | None = timedelta(days=30)
    deliveries: timedelta | None = timedelta(days=30)
    fires: timedelta | None = timedelta(days=30)


class Retention:
    def __init__(self, database: Database, kept: Kept) -> None:
        self._database = database
        batch = {"limit": _BATCH}
        self._kinds: Sequence[tuple[str, timedelta | None, Callable[..., int]]] = (
            ("output of ended tasks", kept.output, partial(retention.output_of_ended_tasks, **batch)),
            ("lines of feeds", kept.feed, partial(retention.feed_lines, **batch)),
            ("deliveries of webhooks", kept.deliveries, partial(retention.ended_deliveries, **batch)),
            ("fires of schedules", kept.fires, partial(retention.past_fires, **batch)),
            ("idempotency keys", creations.KEPT, partial(retention.idempotency_keys, **batch)),
        )

    async def run(self) -> dict[str, int]:
        """How many of each kind were removed."""
        removed: dict[str, int] = {}
        for name, kept, remove in self._kinds:
            if kept is not None:
                removed[name] = await self._remove(kept, remove)
        if any(removed.values()):
            log.info(
                "what was kept long enough was removed", **{name: count for name, count in removed.items() if count}
            )
        return removed

    async def _remove(self, kept: timedelta, remove: Callable[..., int]) -> int:
        total = 0
        for _ in range(_MOST):
            count = await self._database.transaction(partial(_some, kept=kept, remove=remove), name="retention")
            total += count
            if count < _BATCH:
                break
            await asyncio.sleep(_PAUSE)
        return total


def _some(unit: Unit, *, kept: timedelta, remove: Callable[..., int]) -> int:
    return remove(unit, unit.now - kept)
