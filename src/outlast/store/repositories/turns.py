"""Turns: rows, and the compare-and-set moves between their states."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any

import sqlalchemy as sa

from outlast.clock import from_microseconds, to_microseconds
from outlast.ids import OwnerId, SessionId, TurnId, WorkerId
from outlast.store.locked_session import LockedSession
from outlast.store.sql.statement import Row, Statement
from outlast.store.tables import sessions, turns
from outlast.store.unit import Unit
from outlast.values import row_json
from outlast.values.shape import Shape, text


class TurnState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"


MOVES: Mapping[TurnState, frozenset[TurnState]] = {
    TurnState.QUEUED: frozenset({TurnState.RUNNING, TurnState.STOPPED}),
    TurnState.RUNNING: frozenset({TurnState.QUEUED, TurnState.COMPLETED, TurnState.FAILED, TurnState.STOPPED}),
    TurnState.COMPLETED: frozenset(),
    TurnState.FAILED: frozenset(),
    TurnState.STOPPED: frozenset(),
}
ENDED = frozenset(state for state, onward in MOVES.items() if not onward)


class Origin(StrEnum):
    """Who or what started a turn."""

    USER = "user"
    WAKE = "wake"
    PARENT = "parent"
    RETRY = "retry"
    REGENERATE = "regenerate"
    SCHEDULE = "schedule"


class Disposition(StrEnum):
    """The answer to a move: races are answers, not exceptions."""

    MOVED = "moved"
    ALREADY_THERE = "already_there"
    STALE_ATTEMPT = "stale_attempt"


@dataclass(frozen=True, slots=True)
class TurnRow:
    id: TurnId
    session_id: SessionId
    owner_id: OwnerId
    agent: str
    origin: Origin
    state: TurnState
    attempt: int
    crashes: int
    worker_id: WorkerId | None
    model: str | None
    first_event: int
    requests: int
    usage: dict[str, Any]
    error: dict[str, Any] | None
    stop_reason: str | None
    stop_requested_at: datetime | None
    is_admitted: bool
    is_waiting: bool
    """It runs and only waits: it takes no place."""
    not_before: datetime | None
    created_at: datetime
    ended_at: datetime | None
    started_at: datetime | None = None
    """When its first attempt began."""
    log_removed_at: datetime | None = None
    """Since then only its fold is kept."""

    @property
    def is_over(self) -> bool:
        return self.state in ENDED


ERROR: Shape = {"kind": text, "message": text}
"""Of a turn or a task."""


def from_row(row: Row) -> TurnRow:
    return TurnRow(
        id=TurnId(row["id"]),
        session_id=SessionId(row["session_id"]),
        owner_id=OwnerId(row["owner_id"]),
        agent=row["agent"],
        origin=Origin(row["origin"]),
        state=TurnState(row["state"]),
        attempt=row["attempt"],
        crashes=row["crashes"],
        worker_id=row["worker_id"],
        model=row["model"],
        first_event=row["first_event"],
        requests=row["requests"],
        usage=_usage(row["usage"]),
        error=None if row["error"] is None else row_json.read_object(row["error"], ERROR),
        stop_reason=row["stop_reason"],
        stop_requested_at=_instant(row["stop_requested_at"]),
        is_admitted=row["admitted_at"] is not None,
        is_waiting=bool(row["is_waiting"]),
        not_before=_instant(row["not_before"]),
        created_at=from_microseconds(row["created_at"]),
        ended_at=_instant(row["ended_at"]),
        started_at=_instant(row["started_at"]),
        log_removed_at=_instant(row["log_removed_at"]),
    )


def _usage(text: str) -> dict[str, Any]:
    """Of what cannot be read, nothing is known."""
    found = row_json.read_object(text)
    return {} if row_json.is_unreadable(found) else found


def _instant(value: int | None) -> datetime | None:
    return None if value is None else from_microseconds(value)


_THERE = sa.exists().where(sessions.c.id == turns.c.session_id, sessions.c.deleted_at.is_(None))
"""A turn of a session that is being deleted is no longer there."""
_GET = Statement(sa.select(turns).where(turns.c.id == sa.bindparam("id"), _THERE))
_INSERT = Statement(sa.insert(turns).inline(), turns.c.keys())
_FENCE = Statement(
    sa.select(turns.c.attempt, turns.c.state, turns.c.stop_reason).where(turns.c.id == sa.bindparam("id"))
)


def get(connection: sa.Connection, turn_id: TurnId) -> TurnRow | None:
    row = _GET.first(connection, id=turn_id)
    return None if row is None else from_row(row)


def last_of(connection: sa.Connection, session_id: SessionId) -> TurnRow | None:
    return _first(
        connection, sa.select(turns).where(turns.c.session_id == session_id).order_by(turns.c.first_event.desc())
    )


def next_of(connection: sa.Connection, session_id: SessionId, *, after: int) -> TurnRow | None:
    """The session's first turn that begins after an event; of one that was made again, the last that was made."""
    chosen = sa.select(turns).where(turns.c.session_id == session_id, turns.c.first_event > after)
    first = _first(connection, chosen.order_by(turns.c.first_event))
    if first is None:
        return None
    others = chosen.where(turns.c.first_event > first.first_event, turns.c.origin != Origin.REGENERATE)
    other = _first(connection, others.order_by(turns.c.first_event))
    return latest(connection, session_id, limit=1, before=None if other is None else other.first_event)[0]


def latest(connection: sa.Connection, session_id: SessionId, *, limit: int, before: int | None = None) -> list[TurnRow]:
    """The session's last turns, or the last that begin before an event; oldest first."""
    chosen = sa.select(turns).where(turns.c.session_id == session_id)
    if before is not None:
        chosen = chosen.where(turns.c.first_event < before)
    found = connection.execute(chosen.order_by(turns.c.first_event.desc()).limit(limit)).mappings()
    return [from_row(row) for row in found][::-1]


def _first(connection: sa.Connection, chosen: sa.Select[Any]) -> TurnRow | None:
    row = connection.execute(chosen.limit(1)).mappings().first()
    return None if row is None else from_row(row)


def of_session(connection: sa.Connection, session_id: SessionId, limit: int) -> list[TurnRow]:
    """In the order in which they were made."""
    rows = connection.execute(
        sa.select(turns).where(turns.c.session_id == session_id).order_by(turns.c.first_event).limit(limit)
    )
    return [from_row(row) for row in rows.mappings()]


def insert(
    unit: Unit,
    session: LockedSession,
    turn_id: TurnId,
    *,
    origin: Origin,
    is_admitted: bool,
    first_event: int,
    model: str | None,
    not_before: datetime | None = None,
    worker_id: WorkerId | None = None,
) -> TurnRow:
    """With a worker: claimed as it is made."""
    is_claimed = worker_id is not None
    values = {
        "id": turn_id,
        "session_id": session.id,
        "owner_id": session.owner_id,
        "agent": session.agent,
        "origin": origin.value,
        "state": (TurnState.RUNNING if is_claimed else TurnState.QUEUED).value,
        "attempt": int(is_claimed),
        "crashes": 0,
        "worker_id": worker_id,
        "model": model,
        "first_event": first_event,
        "requests": 0,
        "usage": "{}",
        "error": None,
        "stop_reason": None,
        "stop_requested_at": None,
        "is_waiting": False,
        "admitted_at": unit.now_us if is_admitted else None,
        "not_before": None if not_before is None else to_microseconds(not_before),
        "created_at": unit.now_us,
        "started_at": unit.now_us if is_claimed else None,
        "ended_at": None,
        "log_removed_at": None,
    }
    unit.write(_INSERT, **values)
    return from_row(values)


@dataclass(frozen=True, slots=True)
class MayWrite:
    """An attempt is the one that may write. `stop_reason`: why it was asked to stop, if it was."""

    stop_reason: str | None


def may_write(unit: Unit, turn_id: TurnId, attempt: int) -> MayWrite | None:
    """None when another attempt may write, or none: the fence of every write of a turn."""
    row = _FENCE.first(unit.reading(turns), id=turn_id)
    if row is None or row["attempt"] != attempt or row["state"] != TurnState.RUNNING.value:
        return None
    return MayWrite(row["stop_reason"])


def move(
    unit: Unit, turn_id: TurnId, values: dict[str, Any], *, source: TurnState, target: TurnState, attempt: int
) -> Disposition:
    """Compare-and-set on state and attempt; `values` may hold the new attempt."""
    assert target in MOVES[source], f"{source} -> {target} is not a move"
    values = {**values, "state": target.value}
    if target in ENDED:
        values["ended_at"] = unit.now_us
    key = {"key": turn_id, "source": source.value, "held": attempt}
    if _move(tuple(values)).run(unit.connection, **key, **values) == 1:
        return Disposition.MOVED
    current = get(unit.connection, turn_id)
    if current is not None and current.state == target and current.attempt == values.get("attempt", attempt):
        return Disposition.ALREADY_THERE
    return Disposition.STALE_ATTEMPT


def set_values(unit: Unit, turn_id: TurnId, **values: Any) -> None:
    unit.write(_set(tuple(values)), key=turn_id, **values)


def set_now(unit: Unit, turn_id: TurnId, **values: Any) -> None:
    """For a turn that waits for a place: whoever gives it one holds its row, and then waits for the owner's feed."""
    _set(tuple(values)).run(unit.connection, key=turn_id, **values)


def _update(names: tuple[str, ...]) -> sa.Update:
    update = sa.update(turns).where(turns.c.id == sa.bindparam("key"))
    return update.values({name: sa.bindparam(name) for name in names})


@cache
def _set(names: tuple[str, ...]) -> Statement:
    return Statement(_update(names))


@cache
def _move(names: tuple[str, ...]) -> Statement:
    held = (turns.c.state == sa.bindparam("source"), turns.c.attempt == sa.bindparam("held"))
    return Statement(_update(names).where(*held))


def request_stop(unit: Unit, turn_id: TurnId, reason: str) -> None:
    unit.connection.execute(
        sa.update(turns)
        .where(turns.c.id == turn_id, turns.c.stop_requested_at.is_(None))
        .values(stop_requested_at=unit.now_us, stop_reason=reason)
    )


def encode(value: Any) -> str:
    return row_json.write(value)


def open_of_owner(connection: sa.Connection, owner_id: str) -> tuple[int, int]:
    """How many of an owner's turns take a place (running, or handed to the engine), and how many wait for one."""
    has_place, admitted, total = _COUNT_OPEN.tuples(connection, owner=owner_id)[0]
    return has_place, total - admitted


def next_to_admit(connection: sa.Connection, owner_id: str) -> TurnRow | None:
    row = _NEXT.first(connection, owner=owner_id)
    return None if row is None else from_row(row)


def running_without(connection: sa.Connection, alive: WorkerId) -> list[TurnRow]:
    """Turns whose worker is not this one: on one machine, those workers are dead."""
    rows = connection.execute(
        sa.select(turns).where(
            turns.c.state == TurnState.RUNNING.value, turns.c.ended_at.is_(None), turns.c.worker_id != alive, _THERE
        )
    )
    return [from_row(row) for row in rows.mappings()]


def running_under(connection: sa.Connection, worker_id: WorkerId) -> list[TurnRow]:
    rows = connection.execute(
        sa.select(turns).where(
            turns.c.state == TurnState.RUNNING.value, turns.c.ended_at.is_(None), turns.c.worker_id == worker_id, _THERE
        )
    )
    return [from_row(row) for row in rows.mappings()]


def queued_and_admitted(connection: sa.Connection) -> list[TurnRow]:
    rows = connection.execute(
        sa.select(turns)
        .where(
            turns.c.state == TurnState.QUEUED.value,
            turns.c.ended_at.is_(None),
            turns.c.admitted_at.is_not(None),
        )
        .order_by(turns.c.id)
    )
    return [from_row(row) for row in rows.mappings()]


_OPEN = (turns.c.owner_id == sa.bindparam("owner"), turns.c.ended_at.is_(None))
_HAS_PLACE = sa.func.count(sa.case((~turns.c.is_waiting, turns.c.admitted_at)))
_COUNT_OPEN = Statement(sa.select(_HAS_PLACE, sa.func.count(turns.c.admitted_at), sa.func.count()).where(*_OPEN))
_NEXT = Statement(
    sa.select(turns)
    .where(*_OPEN, turns.c.admitted_at.is_(None))
    .order_by(turns.c.created_at, turns.c.id)
    .limit(1)
    .with_for_update()
)
"""By the database's clock: ids are made by those of several machines."""
