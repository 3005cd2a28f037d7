"""The folds of turns whose log is gone: the events that are kept of each, in few rows."""

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from pydantic_core import from_json, to_json

from outlast.clock import to_microseconds
from outlast.events.event import Event
from outlast.ids import SessionId, TurnId
from outlast.store.repositories import events
from outlast.store.repositories.events import from_row
from outlast.store.sql.statement import Row, Statement
from outlast.store.tables import turn_folds
from outlast.store.unit import Unit
from outlast.values import row_json

_OF_TURN = Statement(
    sa.select(turn_folds.c.events, turn_folds.c.data)
    .where(turn_folds.c.session_id == sa.bindparam("session"), turn_folds.c.turn_id == sa.bindparam("turn"))
    .order_by(turn_folds.c.number)
)


def add(unit: Unit, session_id: SessionId, turn_id: TurnId, events: Sequence[Event], *, up_to: int) -> None:
    """Of one page of the log, which ends at `up_to`."""
    written = [row_json.write(each.data) for each in events]
    entries = [
        (each.number, each.type, to_microseconds(each.at), each.turn_id, each.task_id, len(data))
        for each, data in zip(events, written, strict=True)
    ]
    values = {
        "session_id": session_id,
        "turn_id": turn_id,
        "number": up_to,
        "events": to_json(entries).decode(),
        "data": "".join(written),
    }
    unit.connection.execute(sa.insert(turn_folds).values(values))


def last_number(connection: sa.Connection, session_id: SessionId, turn_id: TurnId) -> int | None:
    """How far the log of a turn is folded; None when that has not begun."""
    own = (turn_folds.c.session_id == session_id, turn_folds.c.turn_id == turn_id)
    return connection.execute(sa.select(sa.func.max(turn_folds.c.number)).where(*own)).scalar()


def rows_of(connection: sa.Connection, session_id: SessionId, turn_id: TurnId) -> list[Row]:
    """What is kept of a turn, and what was told of tasks since the turn before it: as rows of the log."""
    return [
        row
        for found in _OF_TURN.rows(connection, session=session_id, turn=turn_id)
        for row in _rows(session_id, found["events"], found["data"])
    ]


def events_of(connection: sa.Connection, session_id: SessionId, turn_id: TurnId) -> list[Event]:
    return [from_row(row) for row in rows_of(connection, session_id, turn_id)]


def end_of(connection: sa.Connection, session_id: SessionId, turn_id: TurnId) -> dict[str, Any]:
    """What was told when a turn ended, in its log or since that is gone; nothing where neither is kept."""
    kept = [each for each in events_of(connection, session_id, turn_id) if each.is_terminal]
    return dict(kept[-1].data) if kept else events.end_of(connection, session_id, turn_id)


def containing(connection: sa.Connection, session_id: SessionId, text: str, *, type: str) -> Iterator[Row]:
    """The kept events of a type whose data contains a text."""
    chosen = (turn_folds.c.session_id == session_id, turn_folds.c.data.contains(text, autoescape=True))
    for listed, data in connection.execute(sa.select(turn_folds.c.events, turn_folds.c.data).where(*chosen)):
        for row in _rows(session_id, listed, data):
            if row["type"] == type and text in row["data"]:
                yield row


def _rows(session_id: SessionId, listed: str, data: str) -> Iterator[Row]:
    begin = 0
    entries: list[Any] = from_json(listed)
    for number, type_, at, turn_id, task_id, length in entries:
        row = {"session_id": session_id, "number": number, "type": type_, "at": at, "turn_id": turn_id}
        yield row | {"task_id": task_id, "data": data[begin : begin + length]}
        begin += length
