"""Inputs: what was sent to a session, from acceptance on."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import count
from typing import Any

import sqlalchemy as sa

from outlast.clock import from_microseconds
from outlast.ids import InputId, SessionId, TaskId, TurnId
from outlast.store.locked_session import LockedSession
from outlast.store.repositories import searched
from outlast.store.sql.statement import Row, Statement
from outlast.store.tables import inputs, tasks
from outlast.store.unit import Unit
from outlast.values import clean, row_json
from outlast.values.shape import Shape, list_of, maybe, object_of, text, whole


class InputKind(StrEnum):
    MESSAGE = "message"
    WAKE = "wake"
    SETTLEMENT = "settlement"
    REQUEST = "request"
    """A task of the session asks something."""
    SCHEDULE = "schedule"
    """A schedule of the session is due, or a monitor has news."""


SAID_BY = "by"
ASSIGNED_BY = "assigned_by"
"""In the body of a message: who said it, or the task of the parent session that asks for it."""


class Mode(StrEnum):
    """What a message wants when the session is busy."""

    STEER = "steer"
    QUEUE = "queue"
    INTERRUPT = "interrupt"
    REJECT = "reject"


class InputState(StrEnum):
    """`grouped`: a wake that waits for the rest of its group. `withdrawn`: a wake whose news was told otherwise."""

    WAITING = "waiting"
    GROUPED = "grouped"
    DELIVERED = "delivered"
    REMOVED = "removed"
    WITHDRAWN = "withdrawn"


UNDELIVERED = (InputState.WAITING.value, InputState.GROUPED.value)
"""States of an input that the model is still to see."""


@dataclass(frozen=True, slots=True)
class Input:
    """One thing sent to a session. `message` is the position in history at which the model saw it."""

    id: InputId
    session_id: SessionId
    sequence: int
    kind: InputKind
    mode: Mode
    state: InputState
    text: str
    created_at: datetime
    body: dict[str, Any] = field(default_factory=dict[str, Any])
    task_id: TaskId | None = None
    turn_id: TurnId | None = None
    message: int | None = None
    idempotency_key: str | None = None
    place: int | None = None
    """Among the messages that wait, from 1; None unless it was read with them."""

    @property
    def by(self) -> str | None:
        """Who said it; of what a parent session asks, the id of its task."""
        return self.body.get(SAID_BY) or self.body.get(ASSIGNED_BY)

    @property
    def task_ids(self) -> list[TaskId]:
        """The tasks that it tells of."""
        return [] if self.task_id is None else [self.task_id]


_FILE: Shape = {"id": text, "name": text, "media_type": text, "bytes": whole}
_BODY: Shape = {
    "model": maybe(text),
    "files": maybe(list_of(object_of(_FILE))),
    "context": maybe(object_of({"content": text, "url": maybe(text)})),
    "content": maybe(list_of(lambda each: isinstance(each, str | dict))),
    "schedule": maybe(object_of({"id": text, "notice": maybe(text)})),
    "trace": maybe(object_of()),
    **{SAID_BY: maybe(text), ASSIGNED_BY: maybe(text)},
}


def from_row(row: Row) -> Input:
    return Input(
        id=InputId(row["id"]),
        session_id=SessionId(row["session_id"]),
        sequence=row["sequence"],
        kind=InputKind(row["kind"]),
        mode=Mode(row["mode"]),
        state=InputState(row["state"]),
        text=row["text"],
        created_at=from_microseconds(row["created_at"]),
        body=row_json.read_object(row["body"], _BODY),
        task_id=row["task_id"],
        turn_id=row["turn_id"],
        message=row["message"],
        idempotency_key=row["idempotency_key"],
    )


_WAITING = Statement(
    sa.select(inputs)
    .where(inputs.c.session_id == sa.bindparam("session"), inputs.c.state == InputState.WAITING.value)
    .order_by(inputs.c.sequence)
)
_OF_SESSION = sa.select(inputs).where(inputs.c.session_id == sa.bindparam("session"))
_GET = Statement(_OF_SESSION.where(inputs.c.id == sa.bindparam("id")))
_FIRST_MESSAGE = Statement(
    _OF_SESSION.where(inputs.c.kind == InputKind.MESSAGE.value, inputs.c.state != InputState.REMOVED.value)
    .order_by(inputs.c.sequence)
    .limit(1)
)
_BY_KEY = Statement(_OF_SESSION.where(inputs.c.idempotency_key == sa.bindparam("key")))
_INSERT = Statement(sa.insert(inputs).inline(), inputs.c.keys())
_DELIVER = Statement(
    sa.update(inputs)
    .where(inputs.c.id == sa.bindparam("key"), inputs.c.state == InputState.WAITING.value)
    .values(
        state=InputState.DELIVERED.value,
        turn_id=sa.bindparam("in_turn"),
        message=sa.bindparam("at_message"),
        delivered_at=sa.bindparam("at"),
    )
)


def waiting(connection: sa.Connection, session_id: SessionId) -> list[Input]:
    """In the order in which they were accepted."""
    return [from_row(row) for row in _WAITING.rows(connection, session=session_id)]


def placed(found: Sequence[Input]) -> list[Input]:
    """All that waits in a session, each message with its place."""
    places = count(1)
    return [replace(each, place=next(places)) if each.kind is InputKind.MESSAGE else each for each in found]


def get_placed(connection: sa.Connection, session_id: SessionId, input_id: InputId) -> Input | None:
    """One, with its place while it waits."""
    found = get(connection, session_id, input_id)
    if found is None or found.state is not InputState.WAITING:
        return found
    return next(each for each in placed(waiting(connection, session_id)) if each.id == input_id)


def undelivered(connection: sa.Connection, session_id: SessionId) -> list[Input]:
    """Those that wait, and those that wait for their group; in the order in which they were accepted."""
    chosen = _OF_SESSION.where(inputs.c.state.in_(UNDELIVERED)).order_by(inputs.c.sequence)
    return [from_row(row) for row in connection.execute(chosen, {"session": session_id}).mappings()]


def some(
    connection: sa.Connection, session_id: SessionId, *, ids: Collection[str] = (), keys: Collection[str] = ()
) -> list[Input]:
    """Those that have these ids or keys."""
    if not ids and not keys:
        return []
    is_meant = sa.or_(inputs.c.id.in_(ids), inputs.c.idempotency_key.in_(keys))
    found = connection.execute(_OF_SESSION.where(is_meant), {"session": session_id})
    return [from_row(row) for row in found.mappings()]


def waiting_for(unit: Unit, session_id: SessionId) -> list[Input]:
    """The same inside a transaction that decides what becomes of them."""
    return waiting(unit.reading(inputs), session_id)


def get(connection: sa.Connection, session_id: SessionId, input_id: InputId) -> Input | None:
    row = _GET.first(connection, session=session_id, id=input_id)
    return None if row is None else from_row(row)


def first_message(unit: Unit, session_id: SessionId) -> Input | None:
    """The first of a person's messages, or a parent's, that was not taken back."""
    row = _FIRST_MESSAGE.first(unit.reading(inputs), session=session_id)
    return None if row is None else from_row(row)


def by_key(connection: sa.Connection, session_id: SessionId, key: str) -> Input | None:
    row = _BY_KEY.first(connection, session=session_id, key=key)
    return None if row is None else from_row(row)


def insert(
    unit: Unit,
    session: LockedSession,
    input_id: InputId,
    *,
    kind: InputKind,
    mode: Mode,
    text: str,
    body: dict[str, Any],
    idempotency_key: str | None = None,
    task_id: TaskId | None = None,
    state: InputState = InputState.WAITING,
    was_busy: bool,
) -> Input:
    sequence, text = session.next("last_input"), clean.text(text)
    unit.write(
        _INSERT,
        id=input_id,
        session_id=session.id,
        owner_id=session.owner_id,
        sequence=sequence,
        kind=kind.value,
        mode=mode.value,
        state=state.value,
        text=text,
        body=row_json.write(body),
        idempotency_key=idempotency_key,
        task_id=task_id,
        was_busy=was_busy,
        turn_id=None,
        message=None,
        created_at=unit.now_us,
        delivered_at=None,
    )
    if kind is InputKind.MESSAGE:
        searched.keep(unit, session.id, input_id, text, owner_id=session.owner_id)
    return Input(
        input_id,
        SessionId(session.id),
        sequence,
        kind,
        mode,
        state,
        text,
        unit.now,
        body,
        task_id,
        idempotency_key=idempotency_key,
    )


def last_message(connection: sa.Connection, session_id: SessionId) -> int | None:
    """The position in history of the latest input that the model has seen."""
    return connection.execute(
        sa.select(sa.func.max(inputs.c.message)).where(inputs.c.session_id == session_id)
    ).scalar()


def mark_delivered(unit: Unit, ids: Sequence[InputId], turn_id: TurnId, message: int) -> None:
    """Only in the transaction that commits the request which contains them."""
    for each in ids:
        unit.write(_DELIVER, key=each, in_turn=turn_id, at_message=message, at=unit.now_us)


def change_text(unit: Unit, input_id: InputId, text: str, *, body: Mapping[str, Any]) -> None:
    changed = sa.update(inputs).where(inputs.c.id == input_id).values(text=text, body=row_json.write(body))
    unit.connection.execute(changed)


def mark_removed(unit: Unit, input_id: InputId) -> None:
    unit.connection.execute(sa.update(inputs).where(inputs.c.id == input_id).values(state=InputState.REMOVED.value))


def busy_messages_since(connection: sa.Connection, owner_id: str, since_us: int) -> int:
    return connection.execute(
        sa.select(sa.func.count())
        .select_from(inputs)
        .where(inputs.c.owner_id == owner_id, inputs.c.created_at > since_us, inputs.c.was_busy)
    ).scalar_one()


def release_group(unit: Unit, session_id: SessionId, group: str) -> None:
    """The last of a group has ended: its wakes are due now."""
    unit.connection.execute(
        sa.update(inputs)
        .where(inputs.c.session_id == session_id, inputs.c.state == InputState.GROUPED.value)
        .where(inputs.c.task_id.in_(sa.select(tasks.c.id).where(tasks.c.group == group)))
        .values(state=InputState.WAITING.value)
    )


def untold_tasks(connection: sa.Connection, session_id: SessionId) -> list[TaskId]:
    """The tasks that have ended and whose wakes nobody has seen, those that wait for their group too."""
    found = connection.execute(
        sa.select(inputs.c.task_id)
        .where(
            inputs.c.session_id == session_id,
            inputs.c.kind == InputKind.WAKE.value,
            inputs.c.task_id.is_not(None),
            inputs.c.state.in_(UNDELIVERED),
        )
        .order_by(inputs.c.sequence)
    )
    return [TaskId(task_id) for task_id in found.scalars()]


def withdraw_wakes(unit: Unit, session_id: SessionId, task_ids: Sequence[TaskId]) -> list[InputId]:
    """Take back the wakes of these tasks that nobody has seen. Gives which those are."""
    gone = unit.connection.execute(
        sa.update(inputs)
        .where(
            inputs.c.session_id == session_id,
            inputs.c.task_id.in_(task_ids),
            inputs.c.kind == InputKind.WAKE.value,
            inputs.c.state.in_(UNDELIVERED),
        )
        .values(state=InputState.WITHDRAWN.value)
        .returning(inputs.c.id)
    )
    return [InputId(each) for each in gone.scalars()]
