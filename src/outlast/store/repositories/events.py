"""Events: reading the log page by page, folding ended parts, leaving out what was dropped."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from outlast.clock import from_microseconds
from outlast.events.event import Event
from outlast.events.fold import cut, fold
from outlast.events.shapes import is_as_told
from outlast.events.stream import Page
from outlast.events.types import TERMINAL, EventType
from outlast.ids import SessionId, TurnId
from outlast.store.sql.statement import Row, Statement
from outlast.store.tables import events, sessions
from outlast.store.unit import Unit
from outlast.values import clean, row_json

PAGE = 1_000
_FEW = 100
"""Events of a turn of usual length: they are read at once."""
_PARTS = (EventType.PART_STARTED.value, EventType.PART_DELTA.value, EventType.PART_ENDED.value)

_AFTER = Statement(
    sa.select(events)
    .where(events.c.session_id == sa.bindparam("session"), events.c.number > sa.bindparam("after"))
    .order_by(events.c.number)
    .limit(sa.bindparam("limit"))
)
_BOUNDS = Statement(
    sa.select(sessions.c.owner_id, sessions.c.first_event, sessions.c.last_event, sessions.c.deleted_at).where(
        sessions.c.id == sa.bindparam("session")
    )
)
_NEXT = (
    sa.select(events)
    .where(
        events.c.session_id == sessions.c.id,
        events.c.number > sa.func.greatest(sa.bindparam("after"), sessions.c.first_event - 1),
    )
    .order_by(events.c.number)
    .limit(sa.bindparam("limit"))
    .lateral("next_events")
)
_BOUNDS_AND_AFTER = Statement(
    sa.select(
        *(sessions.c.owner_id, sessions.c.first_event, sessions.c.last_event, sessions.c.deleted_at),
        *(each for each in _NEXT.c),
    )
    .select_from(sessions.outerjoin(_NEXT, sa.true()))
    .where(sessions.c.id == sa.bindparam("session"))
    .order_by(_NEXT.c.number)
)
"""In one statement, which needs no transaction around it. SQLite, where that costs nothing, has no such join."""


def told(type_: str, stored: str) -> tuple[str, dict[str, Any]]:
    """Type and data of an event. One that cannot be read is told as a flag that says so, or as the end that it was.

    Any other type would promise fields that it no longer has.
    """
    data = row_json.read_object(stored)
    if not row_json.is_unreadable(data):
        if is_as_told(type_, data):
            return type_, data
        data = row_json.unreadable(len(stored))
    lost = {"reason": row_json.UNREADABLE, **data}
    if type_ in TERMINAL:
        return type_, {"output": None, "usage": {}, "is_retryable": True, "reference": None, **lost}
    return EventType.SESSION_FLAGGED.value, {"type": type_, **lost}


def from_row(row: Row) -> Event:
    type_, data = told(row["type"], row["data"])
    return Event(
        session_id=SessionId(row["session_id"]),
        number=row["number"],
        type=type_,
        at=from_microseconds(row["at"]),
        data=data,
        turn_id=row["turn_id"],
        task_id=row["task_id"],
    )


def page(connection: sa.Connection, session_id: SessionId, after: int, limit: int = PAGE) -> list[Event]:
    """The next events after a number. One that was folded over that number gives only its rest."""
    rows = _AFTER.rows(connection, session=session_id, after=after, limit=min(limit, PAGE))
    return [cut(from_row(row), after) for row in rows]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which events of a log: between two positions, of a turn, of a task, of types. With `before`, the last ones."""

    after: int = 0
    before: int | None = None
    turn_id: str | None = None
    task_id: str | None = None
    types: Sequence[str] = ()
    limit: int = PAGE


def chosen(connection: sa.Connection, session_id: SessionId, wanted: Chosen) -> list[Event]:
    """In the order of the log."""
    query = sa.select(events).where(events.c.session_id == session_id, events.c.number > wanted.after)
    if wanted.before is not None:
        query = query.where(events.c.number < wanted.before)
    if wanted.turn_id is not None:
        query = query.where(events.c.turn_id == clean.text(wanted.turn_id))
    if wanted.task_id is not None:
        query = query.where(events.c.task_id == clean.text(wanted.task_id))
    if wanted.types:
        query = query.where(events.c.type.in_([clean.text(each) for each in wanted.types]))
    is_last = wanted.before is not None
    query = query.order_by(events.c.number.desc() if is_last else events.c.number)
    rows = connection.execute(query.limit(min(wanted.limit, PAGE))).mappings().all()
    return [cut(from_row(row), wanted.after) for row in (reversed(rows) if is_last else rows)]


def stored_of_turn(
    connection: sa.Connection, session_id: SessionId, turn_id: TurnId, *, first: int, before: int | None
) -> list[Row]:
    """The rows of a turn, from its first event to its end: what was told of it later is not looked for.

    `before`: where the next turn begins.
    """
    found: list[Row] = []
    after, limit = first - 1, _FEW if before is None else min(_FEW, before - first)
    while True:
        rows = _AFTER.rows(connection, session=session_id, after=after, limit=limit)
        for row in rows:
            if row["turn_id"] == turn_id:
                found.append(row)
            if (row["turn_id"] == turn_id and row["type"] in TERMINAL) or row["number"] + 1 == before:
                return found
        if len(rows) < limit:
            return found
        after, limit = rows[-1]["number"], PAGE


def next_page(
    connection: sa.Connection,
    session_id: SessionId,
    *,
    after: int,
    limit: int = PAGE,
    owner_id: str,
    with_deleted: bool = False,
) -> Page | None:
    """The next events of a session after a number, or from the first that is kept; None as `bounds` says it."""
    limit = min(limit, PAGE)
    if connection.dialect.name != "postgresql":
        found = bounds(connection, session_id, owner_id=owner_id, with_deleted=with_deleted)
        if found is None:
            return None
        return Page(page(connection, session_id, max(after, found[0] - 1), limit), *found)
    rows = _BOUNDS_AND_AFTER.rows(connection, session=session_id, after=after, limit=limit)
    found = _bounds_of(rows[0] if rows else None, owner_id, with_deleted)
    if found is None:
        return None
    start = max(after, found[0] - 1)
    return Page([cut(from_row(row), start) for row in rows if row["number"] is not None], *found)


def bounds(
    connection: sa.Connection, session_id: SessionId, *, owner_id: str | None = None, with_deleted: bool = False
) -> tuple[int, int] | None:
    """The first number that is kept and the last one given; None when there is no such session of this owner.

    With `with_deleted` also of one that is being deleted, while it is not all gone.
    """
    return _bounds_of(_BOUNDS.first(connection, session=session_id), owner_id, with_deleted)


def _bounds_of(row: Row | None, owner_id: str | None, with_deleted: bool) -> tuple[int, int] | None:
    if row is None or (owner_id is not None and row["owner_id"] != owner_id):
        return None
    return None if row["deleted_at"] is not None and not with_deleted else (row["first_event"], row["last_event"])


def last_end(connection: sa.Connection, session_id: SessionId, *, before: int) -> int | None:
    """The number at which the last turn ended before an event; None if none did, or it is no longer kept."""
    ended = sa.select(events.c.number).where(
        events.c.session_id == session_id, events.c.number < before, events.c.type.in_(TERMINAL)
    )
    return connection.execute(ended.order_by(events.c.number.desc()).limit(1)).scalar()


def end_of(connection: sa.Connection, session_id: SessionId, turn_id: TurnId) -> dict[str, Any]:
    """What was told when a turn ended; nothing where that is no longer kept."""
    found = _of_turn(connection, session_id, turn_id, TERMINAL, 0, 1)
    return dict(found[0].data) if found else {}


def of_turn(
    connection: sa.Connection, session_id: SessionId, turn_id: TurnId, types: Collection[str], *, after: int
) -> list[Event]:
    """Without those that cannot be read."""
    found = _of_turn(connection, session_id, turn_id, types, after, None)
    return [event for event in found if event.type in types]


def _of_turn(
    connection: sa.Connection,
    session_id: SessionId,
    turn_id: TurnId,
    types: Collection[str],
    after: int,
    limit: int | None,
) -> list[Event]:
    rows = connection.execute(
        sa.select(events)
        .where(
            events.c.session_id == session_id,
            events.c.number > after,
            events.c.turn_id == turn_id,
            events.c.type.in_(types),
        )
        .order_by(events.c.number)
        .limit(limit)
    )
    return [from_row(row) for row in rows.mappings()]


def drop_parts(unit: Unit, session_id: SessionId, turn_id: TurnId, *, after: int) -> list[str]:
    """Leave a lost partial response out of every replay from now on. Gives the ids of its parts."""
    lost = of_turn(unit.connection, session_id, turn_id, _PARTS, after=after)
    if lost:
        unit.connection.execute(
            sa.delete(events).where(
                events.c.session_id == session_id,
                events.c.number > after,
                events.c.turn_id == turn_id,
                events.c.type.in_(_PARTS),
            )
        )
    return list(dict.fromkeys(event.data["part"] for event in lost if event.type in _PARTS))


def fold_parts(unit: Unit, session_id: SessionId, turn_id: TurnId, *, after: int) -> int | None:
    """Fold a page of the deltas of a turn's ended parts. Gives the number to go on after; None when all is done.

    A turn of any length is folded page by page, each in a transaction of its own: others write in between.
    """
    found = _of_turn(unit.connection, session_id, turn_id, (EventType.PART_DELTA.value,), after, PAGE)
    if not found:
        return None
    ends = of_turn(unit.connection, session_id, turn_id, (EventType.PART_ENDED.value,), after=after)
    ended = {event.data["part"] for event in ends if event.type == EventType.PART_ENDED}
    for group in fold(event for event in found if event.type == EventType.PART_DELTA and event.data["part"] in ended):
        gone = [number for number in group.replaces if number != group.event.number]
        unit.connection.execute(sa.delete(events).where(events.c.session_id == session_id, events.c.number.in_(gone)))
        unit.connection.execute(
            sa.update(events)
            .where(events.c.session_id == session_id, events.c.number == group.event.number)
            .values(data=row_json.write(group.event.data))
        )
    return found[-1].number if len(found) == PAGE else None


def trim(unit: Unit, session_id: SessionId, *, before: int) -> None:
    """Forget events below a number. Readers that ask for them are told what is still there."""
    session = unit.lock(session_id)
    first = min(max(before, session.first_event), session.last_event + 1)
    unit.connection.execute(sa.delete(events).where(events.c.session_id == session_id, events.c.number < first))
    session.set(first_event=first)
