"""The feed of an owner: a line for each change of state in any of its sessions, in the order of their commits.

`Unit` writes it, in the commit of the change itself.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import sqlalchemy as sa

from outlast.clock import from_microseconds
from outlast.events.event import Event
from outlast.ids import OwnerId, SessionId, TaskId, TurnId
from outlast.store.repositories.events import told
from outlast.store.tables import events, feed


@dataclass(frozen=True)
class Line:
    """Where an event stands in the feed."""

    number: int
    session_id: SessionId
    event_number: int
    type: str
    at: datetime
    turn_id: TurnId | None
    task_id: TaskId | None
    stored: str | None
    """Its data as its session's log has it; None when the log no longer has it."""

    @cached_property
    def event(self) -> Event | None:
        """None when its session's log no longer has it. Made once, however many are told, and only if somebody is."""
        if self.stored is None:
            return None
        type_, data = told(self.type, self.stored)
        return Event(self.session_id, self.event_number, type_, self.at, data, self.turn_id, self.task_id)


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


def behind(connection: sa.Connection, owner_id: OwnerId, after: int, most: int) -> int:
    """How many lines follow a number; of more than `most` it is said that there are so many and one."""
    lines = sa.select(feed.c.number).where(feed.c.owner_id == owner_id, feed.c.number > after).limit(most + 1)
    return connection.execute(sa.select(sa.func.count()).select_from(lines.subquery())).scalar_one()


def _line(row: sa.RowMapping) -> Line:
    return Line(
        row["number"],
        SessionId(row["session_id"]),
        row["event"],
        row["type"],
        from_microseconds(row["at"]),
        row["turn_id"],
        row["task_id"],
        row["data"],
    )
