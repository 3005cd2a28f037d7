"""The feed of an owner: a line for each change of state in any of its sessions, in the order of their commits.

`Unit` writes it, in the commit of the change itself.
"""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from outlast.clock import from_microseconds
from outlast.events.event import Event
from outlast.ids import OwnerId, SessionId
from outlast.store.repositories.events import told
from outlast.store.tables import events, feed


@dataclass(frozen=True, slots=True)
class Line:
    """Where an event stands in the feed. `event` is None when its session's log no longer has it."""

    number: int
    session_id: SessionId
    event_number: int
    type: str
    at: datetime
    event: Event | None


_AFTER = (
    sa.select(feed, events.c.turn_id, events.c.task_id, events.c.data)
    .select_from(
        feed.outerjoin(events, sa.and_(events.c.session_id == feed.c.session_id, events.c.number == feed.c.event))
    )
    .where(feed.c.owner_id == sa.bindparam("owner"), feed.c.number > sa.bindparam("after"))
    .order_by(feed.c.number)
    .limit(sa.bindparam("limit"))
)
_LAST = sa.select(sa.func.max(feed.c.number)).where(feed.c.owner_id == sa.bindparam("owner"))


def page(connection: sa.Connection, owner_id: OwnerId, after: int, limit: int) -> list[Line]:
    rows = connection.execute(_AFTER, {"owner": owner_id, "after": after, "limit": limit})
    return [_line(row) for row in rows.mappings()]


def last(connection: sa.Connection, owner_id: OwnerId) -> int:
    """The number of the owner's last line; 0 when there is none."""
    return connection.execute(_LAST, {"owner": owner_id}).scalar() or 0


def _line(row: sa.RowMapping) -> Line:
    session_id, at = SessionId(row["session_id"]), from_microseconds(row["at"])
    event = None
    if row["data"] is not None:
        type_, data = told(row["type"], row["data"])
        event = Event(session_id, row["event"], type_, at, data, row["turn_id"], row["task_id"])
    return Line(row["number"], session_id, row["event"], row["type"], at, event)
