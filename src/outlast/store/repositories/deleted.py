"""Sessions marked as deleted, and the removal of their rows: bit by bit, the session's own row last."""

import sqlalchemy as sa

from outlast.events.types import EventType
from outlast.ids import SessionId
from outlast.store.tables import (
    events,
    feed,
    files,
    fires,
    inputs,
    messages,
    outputs,
    removed_logs,
    results,
    schedules,
    searched,
    sessions,
    summaries,
    tasks,
    turn_folds,
    turns,
    webhook_deliveries,
)
from outlast.store.unit import Unit

_BATCH = 5_000
_FEW = 1_000
"""Of what may be long: others who write wait for each transaction."""


def marked(connection: sa.Connection) -> list[SessionId]:
    found = connection.execute(sa.select(sessions.c.id).where(sessions.c.deleted_at.is_not(None)))
    return [SessionId(each) for each in found.scalars()]


def remove_some(unit: Unit, session_id: SessionId) -> bool:
    """Remove some of the rows of a marked session. True when only its own row is left.

    Two processes may be at it: the lock lets one go after the other.
    """
    unit.connection.execute(sa.select(sessions.c.id).where(sessions.c.id == session_id).with_for_update())
    first = unit.connection.execute(
        sa.select(sa.func.min(events.c.number)).where(events.c.session_id == session_id)
    ).scalar_one()
    if first is not None:
        some = (events.c.session_id == session_id, events.c.number < first + _BATCH)
        unit.connection.execute(sa.delete(events).where(*some))
        return False
    for table in (
        messages,
        outputs,
        results,
        files,
        inputs,
        tasks,
        turns,
        fires,
        schedules,
        webhook_deliveries,
        summaries,
        turn_folds,
        removed_logs,
        searched,
    ):
        key = list(table.primary_key.columns)
        some = sa.select(*key).where(table.c.session_id == session_id).limit(_FEW)
        if unit.connection.execute(sa.delete(table).where(sa.tuple_(*key).in_(some))).rowcount == _FEW:
            return False
    # What the owner's feed says of events that are gone; that the session was deleted stays.
    # By owner, as readers find them: an index by session would cost every turn for the sake of this.
    owner_id = sa.select(sessions.c.owner_id).where(sessions.c.id == session_id).scalar_subquery()
    lines = (feed.c.session_id == session_id, feed.c.type != EventType.SESSION_DELETED.value)
    unit.connection.execute(sa.delete(feed).where(feed.c.owner_id == owner_id, *lines))
    return True


def remove_last(unit: Unit, session_id: SessionId) -> bool:
    """The mark itself, when the files are gone too; rows that came late go with it."""
    marked_row = (sessions.c.id == session_id, sessions.c.deleted_at.is_not(None))
    return unit.connection.execute(sa.delete(sessions).where(*marked_row)).rowcount == 1
