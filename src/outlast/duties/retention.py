"""Retention: what is kept for a time only is removed beside the work, a little at a time; nobody waits for it.

Nothing that runs, waits or is needed is touched: output only of tasks that have ended, deliveries that have ended,
fires that came to something, archived sessions in which nothing is open. Messages are kept as long as their session,
and so is what a turn folds to.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import structlog

from outlast.clock import monotonic
from outlast.duties.deletions import Deletions
from outlast.duties.old_logs import OldLogs
from outlast.duties.old_sessions import OldSessions
from outlast.store.database import Database
from outlast.store.repositories import creations, old_logs, retention
from outlast.store.unit import Unit

log = structlog.get_logger("outlast.retention")

EVERY = timedelta(minutes=10)
_BATCH = 200
_PAUSE = 0.02
"""Seconds between two transactions, at least: others come first."""
_SHARE = 4
"""So many times as long as a transaction took nothing is removed after it."""
_MOST = 500
"""Steps of each kind in one run of the duty; the next run goes on, and comes soon."""
_SOON = 1.0
_NOTED = timedelta(days=365)
"""How long after a session was removed for its age its owner can read that it was."""

Remove = Callable[[Unit, datetime], int]


@dataclass(frozen=True, slots=True)
class Kept:
    """How long each kind is kept; None: for ever."""

    output: timedelta | None = timedelta(days=30)
    feed: timedelta | None = timedelta(days=30)
    deliveries: timedelta | None = timedelta(days=30)
    fires: timedelta | None = timedelta(days=30)
    events: timedelta | None = None
    archived: timedelta | None = None


class Retention:
    def __init__(self, database: Database, kept: Kept, deletions: Deletions) -> None:
        self._database = database
        self._is_more_left = False
        rows = (
            ("output of ended tasks", kept.output, retention.output_of_ended_tasks),
            ("lines of feeds", kept.feed, retention.feed_lines),
            ("deliveries of webhooks", kept.deliveries, retention.ended_deliveries),
            ("fires of schedules", kept.fires, retention.past_fires),
            ("idempotency keys", creations.KEPT, retention.idempotency_keys),
            ("notes of removed sessions", _NOTED, retention.notes_of_removed_sessions),
        )
        self._kinds: Sequence[tuple[str, Callable[[], Awaitable[int]]]] = [
            (name, partial(self._some, time, remove)) for name, time, remove in rows if time is not None
        ]
        if kept.events is not None:
            logs = OldLogs(database, kept.events)
            left = partial(self._some, old_logs.READ_ON, old_logs.rows_that_left)
            self._kinds = [*self._kinds, ("logs of ended turns", logs.some), ("rows of these logs", left)]
        if kept.archived is not None:
            old = OldSessions(database, deletions, kept.archived)
            self._kinds = [*self._kinds, ("archived sessions", old.some)]

    async def wait(self) -> None:
        """Until there may be something to remove."""
        await asyncio.sleep(_SOON if self._is_more_left else EVERY.total_seconds())

    async def run(self) -> dict[str, int]:
        """How many of each kind were removed: rows, tasks or sessions, and pages of logs that were folded."""
        self._is_more_left = False
        removed = {name: await self._remove(some) for name, some in self._kinds}
        if any(removed.values()):
            log.info(
                "what was kept long enough was removed", **{name: count for name, count in removed.items() if count}
            )
        return removed

    async def _remove(self, some: Callable[[], Awaitable[int]]) -> int:
        total = 0
        for _ in range(_MOST):
            began = monotonic()
            count = await some()
            if not count:
                return total
            total += count
            await asyncio.sleep(max(_PAUSE, _SHARE * (monotonic() - began)))
        self._is_more_left = True
        return total

    async def _some(self, kept: timedelta, remove: Callable[..., int]) -> int:
        return await self._database.transaction(partial(_older, kept=kept, remove=remove), name="retention")


def _older(unit: Unit, *, kept: timedelta, remove: Callable[..., int]) -> int:
    return remove(unit, unit.now - kept, limit=_BATCH)
