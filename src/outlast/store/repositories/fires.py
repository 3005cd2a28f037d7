"""Fires: what became of each time at which a schedule was due. What `ran` is seen by its input or its task."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import sqlalchemy as sa

from outlast.clock import from_microseconds, to_microseconds
from outlast.ids import InputId, ScheduleId, SessionId, TaskId, TurnId
from outlast.store.repositories.inputs import InputState
from outlast.store.repositories.schedules import Schedule, from_row
from outlast.store.tables import fires, inputs, schedules, tasks, turns
from outlast.store.unit import Unit


class How(StrEnum):
    DUE = "due"
    TRIGGERED = "triggered"


class FireOutcome(StrEnum):
    """`FIRED`: its input or task was made. Whether that has begun, is another thing: then it `RAN`."""

    FIRED = "fired"
    RAN = "ran"
    REMOVED = "removed"
    """Its input was taken back before the model saw it."""
    QUEUED = "queued"
    """It fires when what an earlier one began is over."""
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Fire:
    schedule_id: ScheduleId
    number: int
    due_at: datetime
    at: datetime
    """When that was decided."""
    how: How
    outcome: FireOutcome
    late_seconds: float
    count: int = 1
    """For so many times this stands."""
    reason: str | None = None
    detail: str | None = None
    input_id: InputId | None = None
    task_id: TaskId | None = None
    turn_id: TurnId | None = None
    """The turn in which the model saw its input."""
    ran_at: datetime | None = None
    is_over: bool = True
    """Nothing that it began still waits or runs."""


_JOINED = (
    sa.select(
        fires,
        inputs.c.state.label("input_state"),
        inputs.c.delivered_at,
        inputs.c.turn_id.label("in_turn"),
        turns.c.ended_at.label("turn_ended_at"),
        tasks.c.id.label("task_there"),
        tasks.c.started_at.label("task_started_at"),
        tasks.c.ended_at.label("task_ended_at"),
    )
    .select_from(
        fires.outerjoin(inputs, inputs.c.id == fires.c.input_id)
        .outerjoin(turns, turns.c.id == inputs.c.turn_id)
        .outerjoin(tasks, tasks.c.id == fires.c.task_id)
    )
    .order_by(fires.c.number.desc())
)
_LOOKED_AT = 100


def _at(value: int | None) -> datetime | None:
    return None if value is None else from_microseconds(value)


def _from_row(row: sa.RowMapping) -> Fire:
    outcome, is_over, ran_at = FireOutcome(row["outcome"]), True, None
    if outcome is FireOutcome.FIRED and row["input_id"] is not None:
        if row["input_state"] == InputState.DELIVERED.value:
            outcome, ran_at = FireOutcome.RAN, _at(row["delivered_at"])
            is_over = row["turn_ended_at"] is not None
        elif row["input_state"] == InputState.WAITING.value:
            is_over = False
        else:
            outcome = FireOutcome.REMOVED
    elif outcome is FireOutcome.FIRED and row["task_id"] is not None:
        ran_at = _at(row["task_started_at"])
        outcome = FireOutcome.FIRED if ran_at is None else FireOutcome.RAN
        is_over = row["task_there"] is None or row["task_ended_at"] is not None
    return Fire(
        schedule_id=ScheduleId(row["schedule_id"]),
        number=row["number"],
        due_at=from_microseconds(row["due_at"]),
        at=from_microseconds(row["at"]),
        how=How(row["how"]),
        outcome=outcome,
        late_seconds=row["late_seconds"],
        count=row["count"],
        reason=row["reason"],
        detail=row["detail"],
        input_id=row["input_id"],
        task_id=row["task_id"],
        turn_id=row["in_turn"],
        ran_at=ran_at,
        is_over=is_over,
    )


def insert(unit: Unit, session_id: SessionId, fire: Fire) -> None:
    unit.connection.execute(
        sa.insert(fires).values(
            schedule_id=fire.schedule_id,
            number=fire.number,
            session_id=session_id,
            due_at=to_microseconds(fire.due_at),
            at=to_microseconds(fire.at),
            how=fire.how.value,
            outcome=fire.outcome.value,
            reason=fire.reason,
            detail=fire.detail,
            late_seconds=fire.late_seconds,
            count=fire.count,
            input_id=fire.input_id,
            task_id=fire.task_id,
        )
    )


def decide(unit: Unit, fire: Fire) -> None:
    """One that was queued has fired, or never will."""
    changed = sa.update(fires).where(fires.c.schedule_id == fire.schedule_id, fires.c.number == fire.number)
    unit.connection.execute(
        changed.values(
            at=to_microseconds(fire.at),
            outcome=fire.outcome.value,
            reason=fire.reason,
            detail=fire.detail,
            late_seconds=fire.late_seconds,
            input_id=fire.input_id,
            task_id=fire.task_id,
        )
    )


def page(connection: sa.Connection, schedule_id: ScheduleId, *, before: int | None, limit: int) -> list[Fire]:
    """Newest first."""
    query = _JOINED.where(fires.c.schedule_id == schedule_id)
    if before is not None:
        query = query.where(fires.c.number < before)
    return [_from_row(row) for row in connection.execute(query.limit(limit)).mappings()]


def still_open(connection: sa.Connection, schedule_id: ScheduleId) -> list[Fire]:
    """Of its last fires, those whose input waits, or whose turn or task is not over."""
    query = _JOINED.where(fires.c.schedule_id == schedule_id, fires.c.outcome == FireOutcome.FIRED.value)
    found = connection.execute(query.limit(_LOOKED_AT)).mappings()
    return [each for each in map(_from_row, found) if not each.is_over]


def queued(connection: sa.Connection, schedule_id: ScheduleId) -> Sequence[Fire]:
    """The oldest first."""
    query = _JOINED.where(fires.c.schedule_id == schedule_id, fires.c.outcome == FireOutcome.QUEUED.value)
    return [_from_row(row) for row in connection.execute(query).mappings()][::-1]


def with_queued(connection: sa.Connection) -> list[Schedule]:
    """The schedules that have queued fires."""
    waiting = sa.select(fires.c.schedule_id).where(fires.c.outcome == FireOutcome.QUEUED.value).distinct()
    found = connection.execute(sa.select(schedules).where(schedules.c.id.in_(waiting)))
    return [from_row(row) for row in found.mappings()]


def delete_of(unit: Unit, schedule_id: ScheduleId) -> None:
    unit.connection.execute(sa.delete(fires).where(fires.c.schedule_id == schedule_id))
