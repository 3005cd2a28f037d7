"""Archived sessions that were kept long enough, and whether they may go."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from outlast.clock import to_microseconds
from outlast.ids import OwnerId, SessionId
from outlast.store.repositories.inputs import UNDELIVERED
from outlast.store.tables import events, inputs, sessions, tasks

_MONITOR = "monitor"
"""Kind of a task that is open as long as its monitor is there, which is paused in an archived session."""


@dataclass(frozen=True, slots=True)
class OldSession:
    id: SessionId
    owner_id: OwnerId
    updated_at: int


def archived(
    connection: sa.Connection, before: datetime, *, after: OldSession | None, limit: int
) -> Sequence[OldSession]:
    """Those in which nothing was done since an instant, the oldest first. `after`: the last one already seen."""
    at = sessions.c
    old = (at.is_archived, at.updated_at < to_microseconds(before), at.deleted_at.is_(None), at.parent_id.is_(None))
    query = sa.select(at.id, at.owner_id, at.updated_at).where(*old)
    if after is not None:
        query = query.where(sa.tuple_(at.updated_at, at.id) > sa.tuple_(sa.literal(after.updated_at), after.id))
    found = connection.execute(query.order_by(at.updated_at, at.id).limit(limit))
    return [OldSession(SessionId(id), OwnerId(owner_id), updated_at) for id, owner_id, updated_at in found]


def may_go(connection: sa.Connection, session_ids: Sequence[SessionId], before: datetime) -> bool:
    """Whether a session and all below it may go: nothing runs, is held or waits for somebody in any of them.

    Nor is an event of them younger than the instant. That a session was archived, or read, is such an event.
    """
    at, before_us = sessions.c, to_microseconds(before)
    own = at.id.in_(session_ids)
    busy = sa.select(at.id).where(
        own, sa.or_(at.turn_id.is_not(None), at.is_held, at.interrupted_calls != "[]", at.updated_at >= before_us)
    )
    young = sa.select(at.id).join(
        events, sa.and_(events.c.session_id == at.id, events.c.number == at.last_event, events.c.at >= before_us)
    )
    runs = sa.select(tasks.c.id).where(
        tasks.c.session_id.in_(session_ids), tasks.c.ended_at.is_(None), tasks.c.kind != _MONITOR
    )
    waits = sa.select(inputs.c.id).where(inputs.c.session_id.in_(session_ids), inputs.c.state.in_(UNDELIVERED))
    return all(connection.execute(each.limit(1)).first() is None for each in (busy, young.where(own), runs, waits))
