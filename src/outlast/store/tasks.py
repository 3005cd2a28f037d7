"""Tasks: rows, states as data, and the compare-and-set moves between them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from pydantic_core import from_json, to_json

from outlast.clock import from_microseconds
from outlast.ids import SessionId, TaskId, TurnId, WorkerId
from outlast.store.tables import tasks
from outlast.store.turns import Disposition
from outlast.store.unit import LockedSession, Unit


class TaskState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    AWAITING_INPUT = "awaiting_input"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


_OVER = {TaskState.SUCCEEDED, TaskState.CANCELED, TaskState.FAILED}
MOVES: Mapping[TaskState, frozenset[TaskState]] = {
    TaskState.QUEUED: frozenset({TaskState.RUNNING, TaskState.CANCELED, TaskState.FAILED}),
    TaskState.RUNNING: frozenset({TaskState.AWAITING_INPUT, TaskState.QUEUED, *_OVER}),
    TaskState.AWAITING_INPUT: frozenset({TaskState.RUNNING, TaskState.QUEUED, *_OVER}),
    TaskState.SUCCEEDED: frozenset(),
    TaskState.FAILED: frozenset(),
    TaskState.CANCELED: frozenset(),
}
ENDED = frozenset(state for state, onward in MOVES.items() if not onward)


class WakePolicy(StrEnum):
    ON_TERMINAL = "on_terminal"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Task:
    id: TaskId
    session_id: SessionId
    turn_id: TurnId | None
    call_id: str | None
    kind: str
    tool: str | None
    title: str
    state: TaskState
    wake: WakePolicy
    attempt: int
    worker_id: WorkerId | None
    result: Any
    error: dict[str, Any] | None
    late_outcome: dict[str, Any] | None
    cancel_requested_at: datetime | None
    created_at: datetime
    ended_at: datetime | None

    @property
    def is_over(self) -> bool:
        return self.state in ENDED

    @property
    def snapshot(self) -> dict[str, Any]:
        """What an event tells of a task: everything but its bodies."""
        return {
            "id": self.id,
            "kind": self.kind,
            "tool": self.tool,
            "call_id": self.call_id,
            "title": self.title,
            "state": self.state.value,
            "attempt": self.attempt,
            "error": self.error,
            "is_cancel_requested": self.cancel_requested_at is not None,
        }


def from_row(row: sa.RowMapping) -> Task:
    return Task(
        id=TaskId(row["id"]),
        session_id=SessionId(row["session_id"]),
        turn_id=row["turn_id"],
        call_id=row["call_id"],
        kind=row["kind"],
        tool=row["tool"],
        title=row["title"],
        state=TaskState(row["state"]),
        wake=WakePolicy(row["wake"]),
        attempt=row["attempt"],
        worker_id=row["worker_id"],
        result=_decode(row["result"]),
        error=_decode(row["error"]),
        late_outcome=_decode(row["late_outcome"]),
        cancel_requested_at=_instant(row["cancel_requested_at"]),
        created_at=from_microseconds(row["created_at"]),
        ended_at=_instant(row["ended_at"]),
    )


def _decode(value: str | None) -> Any:
    return None if value is None else from_json(value)


def _instant(value: int | None) -> datetime | None:
    return None if value is None else from_microseconds(value)


def encode(value: Any) -> str:
    return to_json(value).decode()


def get(connection: sa.Connection, task_id: TaskId) -> Task | None:
    row = connection.execute(sa.select(tasks).where(tasks.c.id == task_id)).mappings().first()
    return None if row is None else from_row(row)


def of_session(connection: sa.Connection, session_id: SessionId) -> list[Task]:
    rows = connection.execute(sa.select(tasks).where(tasks.c.session_id == session_id).order_by(tasks.c.id))
    return [from_row(row) for row in rows.mappings()]


def insert(
    unit: Unit,
    session: LockedSession,
    task_id: TaskId,
    *,
    kind: str,
    title: str,
    wake: WakePolicy,
    worker_id: WorkerId,
    turn_id: TurnId | None = None,
    call_id: str | None = None,
    tool: str | None = None,
    spec: Any = None,
    is_cancel_requested: bool = False,
) -> Task:
    """A task that already runs here, as its first attempt."""
    unit.connection.execute(
        sa.insert(tasks).values(
            id=task_id,
            session_id=session.id,
            owner_id=session.owner_id,
            turn_id=turn_id,
            call_id=call_id,
            kind=kind,
            tool=tool,
            title=title,
            spec=encode(spec),
            state=TaskState.RUNNING.value,
            wake=wake.value,
            attempt=1,
            worker_id=worker_id,
            cancel_requested_at=unit.now_us if is_cancel_requested else None,
            created_at=unit.now_us,
            started_at=unit.now_us,
        )
    )
    task = get(unit.connection, task_id)
    assert task is not None
    return task


def move(unit: Unit, task: Task, target: TaskState, **values: Any) -> Disposition:
    """Compare-and-set on state and attempt: the first to commit wins."""
    assert target in MOVES[task.state], f"{task.state} -> {target} is not a move"
    if target in ENDED:
        values["ended_at"] = unit.now_us
    done = unit.connection.execute(
        sa.update(tasks)
        .where(tasks.c.id == task.id, tasks.c.state == task.state.value, tasks.c.attempt == task.attempt)
        .values(state=target.value, **values)
    )
    return Disposition.MOVED if done.rowcount == 1 else Disposition.STALE_ATTEMPT


def set_values(unit: Unit, task_id: TaskId, **values: Any) -> None:
    unit.connection.execute(sa.update(tasks).where(tasks.c.id == task_id).values(**values))


def running_without(connection: sa.Connection, alive: WorkerId) -> list[Task]:
    rows = connection.execute(
        sa.select(tasks).where(tasks.c.state == TaskState.RUNNING.value, tasks.c.worker_id != alive)
    )
    return [from_row(row) for row in rows.mappings()]
