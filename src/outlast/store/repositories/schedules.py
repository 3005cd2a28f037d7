"""Schedules: what is to happen in a session, and when it is due next. Due is only what is active."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from outlast.clock import from_microseconds, to_microseconds
from outlast.ids import OwnerId, ScheduleId, SessionId, TaskId
from outlast.store.sql.statement import Row, Statement
from outlast.store.tables import schedules, sessions
from outlast.store.unit import Unit
from outlast.timing.when import When
from outlast.timing.zones import kept_zone
from outlast.values import row_json


class ScheduleKind(StrEnum):
    MESSAGE = "message"
    """Gives its session an input."""
    TOOL = "tool"
    """Sets a tool going as a task."""
    MONITOR = "monitor"
    """The same, and wakes the session only when its result meets a condition."""


class ScheduleState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


class Missed(StrEnum):
    """What becomes of times that passed while nothing could fire."""

    RUN_ONCE = "run_once"
    SKIP = "skip"
    RUN_ALL = "run_all"


class Overlap(StrEnum):
    """What becomes of a time that comes while what an earlier one began is not over."""

    SKIP = "skip"
    QUEUE = "queue"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class Schedule:
    id: ScheduleId
    session_id: SessionId
    owner_id: OwnerId
    kind: ScheduleKind
    title: str | None
    text: str | None
    """What is said to the session."""
    tool: str | None
    spec: Mapping[str, Any]
    cron: str | None
    at: datetime | None
    """Of one that fires once."""
    zone: str
    missed: Missed
    overlap: Overlap
    state: ScheduleState
    reason: str | None
    """Why it is paused or has ended."""
    due_at: datetime | None
    made_by: Mapping[str, Any]
    key: str | None
    task_id: TaskId | None
    """The task that a monitor is."""
    last_fire: int
    fired: int
    last_fired_at: datetime | None
    last_result: Any
    created_at: datetime
    updated_at: datetime

    @property
    def when(self) -> When:
        return When(self.cron, self.at, None, self.zone)

    @property
    def name(self) -> str:
        return self.title or self.tool or (self.text or "")[:60]

    @property
    def condition(self) -> Mapping[str, Any] | None:
        return self.spec.get("condition")

    @property
    def next_at(self) -> datetime | None:
        """In its zone."""
        return None if self.due_at is None else self.due_at.astimezone(kept_zone(self.zone))

    @property
    def snapshot(self) -> dict[str, Any]:
        """What its events tell of it."""
        return {
            "id": self.id,
            "kind": self.kind.value,
            "title": self.title,
            "tool": self.tool,
            "text": None if self.text is None else self.text[:2_000],
            "cron": self.cron,
            "at": None if self.at is None else self.at.astimezone(kept_zone(self.zone)).isoformat(),
            "zone": self.zone,
            "state": self.state.value,
            "reason": self.reason,
            "next_at": None if self.next_at is None else self.next_at.isoformat(),
            "missed": self.missed.value,
            "overlap": self.overlap.value,
            "made_by": dict(self.made_by),
            "task_id": self.task_id,
        }


@dataclass(frozen=True, slots=True)
class NewSchedule:
    """What a schedule is made of; `when` and what it does are checked."""

    kind: ScheduleKind
    when: When
    title: str | None = None
    text: str | None = None
    tool: str | None = None
    spec: Mapping[str, Any] = field(default_factory=dict[str, Any])
    missed: Missed = Missed.RUN_ONCE
    overlap: Overlap = Overlap.SKIP
    made_by: Mapping[str, Any] = field(default_factory=dict[str, Any])
    key: str | None = None
    """There is one schedule with this key in the session, however often it is asked for."""


def _at(value: int | None) -> datetime | None:
    return None if value is None else from_microseconds(value)


def _us(value: datetime | None) -> int | None:
    return None if value is None else to_microseconds(value)


def from_row(row: Row) -> Schedule:
    return Schedule(
        id=ScheduleId(row["id"]),
        session_id=SessionId(row["session_id"]),
        owner_id=OwnerId(row["owner_id"]),
        kind=ScheduleKind(row["kind"]),
        title=row["title"],
        text=row["text"],
        tool=row["tool"],
        spec=row_json.read_object(row["spec"]),
        cron=row["cron"],
        at=_at(row["at"]),
        zone=row["zone"],
        missed=Missed(row["missed"]),
        overlap=Overlap(row["overlap"]),
        state=ScheduleState(row["state"]),
        reason=row["reason"],
        due_at=_at(row["due_at"]),
        made_by=row_json.read_object(row["made_by"]),
        key=row["key"],
        task_id=row["task_id"],
        last_fire=row["last_fire"],
        fired=row["fired"],
        last_fired_at=_at(row["last_fired_at"]),
        last_result=None if row["last_result"] is None else row_json.read_object(row["last_result"]).get("value"),
        created_at=from_microseconds(row["created_at"]),
        updated_at=from_microseconds(row["updated_at"]),
    )


_NEXT = sa.select(sa.func.min(schedules.c.due_at).label("due_at")).where(schedules.c.due_at.is_not(None))
_NEXT_HERE = Statement(_NEXT)
_NOW = sa.literal_column("(extract(epoch FROM clock_timestamp()) * 1000000)::bigint", sa.BigInteger)
_NEXT_THERE = Statement(_NEXT.add_columns(_NOW.label("now")))
_GET = Statement(sa.select(schedules).where(schedules.c.id == sa.bindparam("id")))
_OF_KEY = Statement(
    sa.select(schedules).where(
        schedules.c.session_id == sa.bindparam("session"), schedules.c.key == sa.bindparam("key")
    )
)
_DUE = Statement(
    sa.select(schedules)
    .where(schedules.c.due_at.is_not(None), schedules.c.due_at <= sa.bindparam("now"))
    .order_by(schedules.c.due_at)
    .limit(sa.bindparam("limit"))
)


def seconds_to_next(connection: sa.Connection, now: datetime) -> float | None:
    """To the next that is due, of all: one look at the end of an index. `now` is asked of PostgreSQL itself."""
    is_remote = connection.dialect.name == "postgresql"
    row = (_NEXT_THERE if is_remote else _NEXT_HERE).first(connection)
    if row is None or row["due_at"] is None:
        return None
    return (row["due_at"] - (row["now"] if is_remote else to_microseconds(now))) / 1_000_000


def due(unit: Unit, limit: int) -> list[Row]:
    """Those whose time has come, the longest due first; not read yet, for one that is damaged must hold up no other."""
    return list(_DUE.rows(unit.connection, now=unit.now_us, limit=limit))


def get(connection: sa.Connection, schedule_id: ScheduleId) -> Schedule | None:
    row = _GET.first(connection, id=schedule_id)
    return None if row is None else from_row(row)


def of_key(connection: sa.Connection, session_id: SessionId, key: str) -> Schedule | None:
    row = _OF_KEY.first(connection, session=session_id, key=key)
    return None if row is None else from_row(row)


def insert(unit: Unit, schedule_id: ScheduleId, session_id: SessionId, owner_id: str, new: NewSchedule) -> Schedule:
    first = new.when.first(unit.now)
    values = {
        "id": schedule_id,
        "session_id": session_id,
        "owner_id": owner_id,
        "kind": new.kind.value,
        "title": new.title,
        "text": new.text,
        "tool": new.tool,
        "spec": row_json.write(new.spec),
        "cron": new.when.cron,
        "at": None if new.when.cron is not None else to_microseconds(first),
        "zone": new.when.zone,
        "missed": new.missed.value,
        "overlap": new.overlap.value,
        "state": ScheduleState.ACTIVE.value,
        "reason": None,
        "due_at": to_microseconds(first),
        "made_by": row_json.write(new.made_by),
        "key": new.key,
        "task_id": None,
        "last_fire": 0,
        "fired": 0,
        "last_fired_at": None,
        "last_result": None,
        "created_at": unit.now_us,
        "updated_at": unit.now_us,
    }
    unit.connection.execute(sa.insert(schedules).values(values))
    return from_row(values)


def change(unit: Unit, schedule: Schedule, **values: Any) -> bool:
    """Compare-and-set: False if it is no longer due as it was, or not in the state it was in."""
    stored = {"updated_at": unit.now_us, **_stored(values)}
    due_at = _us(schedule.due_at)
    as_it_was = (
        schedules.c.id == schedule.id,
        schedules.c.state == schedule.state.value,
        schedules.c.due_at.is_(None) if due_at is None else schedules.c.due_at == due_at,
    )
    return unit.connection.execute(sa.update(schedules).where(*as_it_was).values(stored)).rowcount == 1


def set_values(unit: Unit, schedule_id: ScheduleId, **values: Any) -> None:
    """Under its session's lock, whatever else it is by now."""
    unit.connection.execute(sa.update(schedules).where(schedules.c.id == schedule_id).values(_stored(values)))


def _stored(values: Mapping[str, Any]) -> dict[str, Any]:
    stored: dict[str, Any] = {}
    for name, value in values.items():
        stored[name] = _us(value) if isinstance(value, datetime) else value
        if name in ("spec", "last_result"):
            stored[name] = row_json.write(value)
    return stored


def delete(unit: Unit, schedule_id: ScheduleId) -> None:
    unit.connection.execute(sa.delete(schedules).where(schedules.c.id == schedule_id))


def open_counts(connection: sa.Connection, session_id: SessionId, owner_id: str) -> tuple[int, int]:
    """Those of a session and of an owner that have not ended."""
    is_open = schedules.c.state != ScheduleState.ENDED.value
    of_owner = sa.select(sa.func.count()).select_from(schedules).where(schedules.c.owner_id == owner_id, is_open)
    of_session = of_owner.where(schedules.c.session_id == session_id)
    return connection.execute(of_session).scalar_one(), connection.execute(of_owner).scalar_one()


def page(
    connection: sa.Connection,
    *,
    owner_id: str,
    session_id: SessionId | None = None,
    state: ScheduleState | None = None,
    before: str | None = None,
    limit: int,
) -> list[Schedule]:
    """Newest first."""
    query = (
        sa.select(schedules)
        .join(sessions, sessions.c.id == schedules.c.session_id)
        .where(schedules.c.owner_id == owner_id, sessions.c.deleted_at.is_(None))
    )
    if session_id is not None:
        query = query.where(schedules.c.session_id == session_id)
    if state is not None:
        query = query.where(schedules.c.state == state.value)
    if before is not None:
        query = query.where(schedules.c.id < before)
    rows = connection.execute(query.order_by(schedules.c.id.desc()).limit(limit))
    return [from_row(row) for row in rows.mappings()]


def of_session(connection: sa.Connection, session_id: SessionId) -> Sequence[Schedule]:
    """Those that have not ended, as they were made."""
    query = sa.select(schedules).where(
        schedules.c.session_id == session_id, schedules.c.state != ScheduleState.ENDED.value
    )
    return [from_row(row) for row in connection.execute(query.order_by(schedules.c.id)).mappings()]


def fall_silent(unit: Unit, session_id: SessionId) -> None:
    """Its session is being deleted: none of its schedules is due any more."""
    silent = sa.update(schedules).where(schedules.c.session_id == session_id, schedules.c.due_at.is_not(None))
    unit.connection.execute(silent.values(due_at=None, state=ScheduleState.ENDED.value, reason="session_deleted"))
