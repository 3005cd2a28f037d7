"""Messages: a session's history, append-only. Bodies are pydantic-ai messages as JSON."""

from dataclasses import dataclass

import sqlalchemy as sa
from pydantic_core import to_json

from outlast.ids import SessionId, TurnId
from outlast.store.locked_session import LockedSession
from outlast.store.sql.statement import Statement
from outlast.store.tables import messages
from outlast.store.unit import Unit


@dataclass(frozen=True, slots=True)
class MessageRow:
    """`superseded_by` is the turn that answers anew; what it supersedes is kept, and no longer shown to the model."""

    position: int
    turn_id: TurnId | None
    kind: str
    body: str
    event: int
    superseded_by: TurnId | None = None


_COLUMNS = sa.select(
    messages.c.position,
    messages.c.turn_id,
    messages.c.kind,
    messages.c.body,
    messages.c.event,
    messages.c.superseded_by,
)
_PAGE = (
    _COLUMNS.where(messages.c.session_id == sa.bindparam("session"), messages.c.position > sa.bindparam("after"))
    .order_by(messages.c.position)
    .limit(sa.bindparam("limit"))
)
_ALL = Statement(_PAGE)
_SEEN = Statement(_PAGE.where(messages.c.superseded_by.is_(None)))
_INSERT = Statement(
    sa.insert(messages).inline(), ("session_id", "position", "turn_id", "kind", "body", "event", "created_at")
)


def page(
    connection: sa.Connection, session_id: SessionId, *, after: int = 0, limit: int = 1_000, seen_only: bool = False
) -> list[MessageRow]:
    """In order; with `seen_only` just those that the model sees."""
    query = _SEEN if seen_only else _ALL
    return [MessageRow(*row) for row in query.tuples(connection, session=session_id, after=after, limit=limit)]


def last(connection: sa.Connection, session_id: SessionId) -> MessageRow | None:
    row = connection.execute(
        _COLUMNS.where(messages.c.session_id == session_id).order_by(messages.c.position.desc()).limit(1)
    ).first()
    return None if row is None else MessageRow(*row)


def last_position(connection: sa.Connection, session_id: SessionId) -> int:
    query = sa.select(sa.func.max(messages.c.position)).where(messages.c.session_id == session_id)
    return connection.execute(query).scalar() or 0


def begins_with_copies(unit: Unit, session_id: SessionId) -> bool:
    """Whether the session was made with messages that were said elsewhere."""
    first = sa.select(messages.c.turn_id).where(messages.c.session_id == session_id, messages.c.position == 1)
    row = unit.reading(messages).execute(first).first()
    return row is not None and row.turn_id is None


def position_of_nth_last(connection: sa.Connection, session_id: SessionId, count: int) -> int:
    """Where the last so many messages begin that the model sees."""
    query = sa.select(messages.c.position).where(
        messages.c.session_id == session_id, messages.c.superseded_by.is_(None)
    )
    found = connection.execute(query.order_by(messages.c.position.desc()).offset(count - 1).limit(1)).scalar()
    return found or 1


def start_of_turn(connection: sa.Connection, session_id: SessionId, turn_id: TurnId) -> int | None:
    """Where the messages of a turn begin that is the last one of its session; None when it has none."""
    others = sa.or_(messages.c.turn_id.is_(None), messages.c.turn_id != turn_id)
    query = sa.select(messages.c.position).where(messages.c.session_id == session_id)
    before = connection.execute(query.where(others).order_by(messages.c.position.desc()).limit(1)).scalar() or 0
    return connection.execute(query.where(messages.c.position > before).order_by(messages.c.position).limit(1)).scalar()


def recent(connection: sa.Connection, session_id: SessionId, *, limit: int) -> list[MessageRow]:
    """The last ones that the model sees, in order."""
    query = _COLUMNS.where(messages.c.session_id == session_id, messages.c.superseded_by.is_(None))
    found = connection.execute(query.order_by(messages.c.position.desc()).limit(limit)).all()
    return [MessageRow(*row) for row in reversed(found)]


def with_result(connection: sa.Connection, session_id: SessionId, call_id: str) -> list[MessageRow]:
    """Those in which the result of a call may stand, the latest first.

    These are all that name the call, and all whose body is in the file store. It looks at every message of the session:
    for what a model asks now and then, not for each turn.
    """
    named = messages.c.body.contains(f'"tool_call_id":{to_json(call_id).decode()}', autoescape=True)
    query = _COLUMNS.where(
        messages.c.session_id == session_id,
        messages.c.kind == "request",
        messages.c.superseded_by.is_(None),
        sa.or_(named, messages.c.body.startswith('{"$file":', autoescape=True)),
    )
    return [MessageRow(*row) for row in connection.execute(query.order_by(messages.c.position.desc()))]


def supersede(unit: Unit, session_id: SessionId, *, after: int, by: TurnId) -> None:
    """What stands after a position is answered anew: the model no longer sees it."""
    unit.connection.execute(
        sa.update(messages)
        .where(messages.c.session_id == session_id, messages.c.position > after, messages.c.superseded_by.is_(None))
        .values(superseded_by=by)
    )


def append(unit: Unit, session: LockedSession, *, turn_id: TurnId | None, kind: str, body: str, event: int) -> int:
    """Append one message; gives its position. `event` is the last number of the log that belongs to it."""
    position = session.next("last_message")
    unit.write(
        _INSERT,
        session_id=session.id,
        position=position,
        turn_id=turn_id,
        kind=kind,
        body=body,
        event=event,
        created_at=unit.now_us,
    )
    return position
