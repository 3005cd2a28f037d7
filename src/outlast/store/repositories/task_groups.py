"""Many tasks in one transaction: found, claimed and ended with a statement for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from outlast.clock import to_microseconds
from outlast.ids import SessionId, TaskId, WorkerId
from outlast.store.repositories import tasks as rows
from outlast.store.repositories.stored_task import MOVES, Task, from_row
from outlast.store.sql.bulk import update_many
from outlast.store.sql.statement import Statement, given_keys
from outlast.store.tables import tasks
from outlast.store.unit import Unit
from outlast.wire.task_state import TaskState

_IDS = given_keys("ids")
_FIND = Statement(sa.select(tasks).join(_IDS, tasks.c.id == _IDS.c.key).where(rows.THERE))
_SESSIONS = Statement(sa.select(tasks.c.id, tasks.c.session_id).join(_IDS, tasks.c.id == _IDS.c.key).where(rows.THERE))
_CLAIM = update_many(tasks, ("id", "state", "worker_id", "attempt", "started_at", "deadline_at"))
_END = update_many(tasks, ("id", "state", "result", "error", "ended_at"))


def sessions_of(unit: Unit, ids: Sequence[TaskId]) -> dict[TaskId, SessionId]:
    """Of those that are there."""
    if unit.dialect == "postgresql":
        return {row["id"]: row["session_id"] for row in _SESSIONS.rows(unit.connection, ids=list(ids))}
    return {each.id: each.session_id for each in _found(unit, ids)}


def lock(unit: Unit, wanted: Mapping[TaskId, SessionId], *, is_alone: bool) -> dict[TaskId, Task]:
    """Those that are there and whose sessions can be had: one that `is_alone` is waited for, others are not."""
    unit.lock_some(wanted.values(), is_alone=is_alone)
    return {each.id: each for each in _found(unit, [each for each in wanted if unit.has_locked(wanted[each])])}


def _found(unit: Unit, ids: Sequence[TaskId]) -> list[Task]:
    if unit.dialect == "postgresql":
        return [from_row(row) for row in _FIND.rows(unit.connection, ids=list(ids))] if ids else []
    return [each for each in (rows.get(unit.connection, task_id) for task_id in ids) if each is not None]


def claim(unit: Unit, found: Sequence[Task], worker_id: WorkerId) -> list[Task]:
    """Queued tasks that were read under their sessions' locks, each as it is then: one more attempt, and this worker's.

    Nobody else moves a task of a locked session, so nothing is compared again.
    """
    assert all(TaskState.RUNNING in MOVES[each.state] for each in found)
    claimed = [
        replace(
            each,
            state=TaskState.RUNNING,
            worker_id=worker_id,
            attempt=each.attempt + 1,
            started_at=each.started_at or unit.now,
            deadline_at=_deadline(each, unit.now),
        )
        for each in found
    ]
    if claimed:
        unit.write_many(
            _CLAIM,
            [
                (
                    each.id,
                    each.state.value,
                    worker_id,
                    each.attempt,
                    to_microseconds(each.since),
                    None if each.deadline_at is None else to_microseconds(each.deadline_at),
                )
                for each in claimed
            ],
        )
    return claimed


def _deadline(task: Task, now: datetime) -> datetime | None:
    """Of a task that has waited to begin, the time that it has is counted from its first start on."""
    seconds = task.spec.get("deadline_seconds")
    if task.deadline_at is not None or seconds is None:
        return task.deadline_at
    return now + timedelta(seconds=seconds)


def end(unit: Unit, ended: Sequence[Task]) -> None:
    """Tasks that were read under their sessions' locks and are not over, given as they are to be."""
    if ended:
        unit.write_many(_END, [_ending(each, unit.now_us) for each in ended])


def _ending(task: Task, at: int) -> tuple[str | int | None, ...]:
    result = None if task.result is None else rows.encode(task.result)
    error = None if task.error is None else rows.encode(task.error)
    return task.id, task.state.value, result, error, at
