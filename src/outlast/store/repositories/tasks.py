"""Tasks: looking for them, making them, and the compare-and-set moves between their states."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from outlast.clock import to_microseconds
from outlast.ids import SessionId, TaskId, TurnId, WorkerId
from outlast.store.locked_session import LockedSession
from outlast.store.repositories.stored_task import (
    MOVES,
    WITH_WORKER,
    NewTask,
    Task,
    TaskOrigin,
    WakePolicy,
    from_row,
)
from outlast.store.repositories.turns import Disposition
from outlast.store.sql.bulk import insert_many
from outlast.store.sql.statement import Statement
from outlast.store.tables import sessions, tasks
from outlast.store.unit import Unit
from outlast.values import clean, row_json
from outlast.wire.task_state import ENDED, TaskState

THERE = sa.exists().where(sessions.c.id == tasks.c.session_id, sessions.c.deleted_at.is_(None))
"""A task of a session that is being deleted is no longer there."""
_GET = Statement(sa.select(tasks).where(tasks.c.id == sa.bindparam("id"), THERE))
_UNKNOWN: Mapping[str, Any] = dict.fromkeys(
    ("result", "error", "late_outcome", "ended_at", "settled", "usage", "output_removed_at")
)
"""Columns that a task gets when it ends, or later."""
_MADE = [column.name for column in tasks.c if column.name not in _UNKNOWN]
_INSERT = insert_many(tasks, _MADE)
_OPEN = (tasks.c.session_id == sa.bindparam("session"), tasks.c.ended_at.is_(None))


def encode(value: Any) -> str:
    return row_json.write(value)


def get(connection: sa.Connection, task_id: TaskId) -> Task | None:
    row = _GET.first(connection, id=task_id)
    return None if row is None else from_row(row)


def of_call(connection: sa.Connection, session_id: SessionId, call_id: str) -> Task | None:
    found = connection.execute(
        sa.select(tasks)
        .where(tasks.c.session_id == session_id, tasks.c.call_id == clean.text(call_id))
        .order_by(tasks.c.id.desc())
        .limit(1)
    )
    row = found.mappings().first()
    return None if row is None else from_row(row)


def of_key(connection: sa.Connection, session_id: SessionId, key: str) -> Task | None:
    found = sa.select(tasks).where(tasks.c.session_id == session_id, tasks.c.key == clean.text(key))
    row = connection.execute(found).mappings().first()
    return None if row is None else from_row(row)


def page(
    connection: sa.Connection,
    *,
    owner_id: str | None = None,
    session_id: SessionId | None = None,
    is_open: bool | None = None,
    state: TaskState | None = None,
    is_settled: bool | None = None,
    kind: str | None = None,
    tool: str | None = None,
    is_needing: bool | None = None,
    before: str | None = None,
    limit: int = 100,
    oldest_first: bool = False,
) -> list[Task]:
    """Newest first, or `oldest_first`; `before` is the id of the last one already seen."""
    query = sa.select(tasks).where(THERE)
    if owner_id is not None:
        query = query.where(tasks.c.owner_id == owner_id)
    if session_id is not None:
        query = query.where(tasks.c.session_id == session_id)
    if is_open is not None:
        query = query.where(tasks.c.ended_at.is_(None) if is_open else tasks.c.ended_at.is_not(None))
    if state is not None:
        query = query.where(tasks.c.state == state.value)
    if is_settled is not None:
        query = query.where(tasks.c.settled.is_not(None) if is_settled else tasks.c.settled.is_(None))
    if kind is not None:
        query = query.where(tasks.c.kind == kind)
    if tool is not None:
        query = query.where(tasks.c.tool == clean.text(tool))
    if is_needing is not None:
        query = query.where(_NEEDING if is_needing else sa.not_(_NEEDING))
    if before is not None:
        query = query.where(tasks.c.id > before if oldest_first else tasks.c.id < before)
    order = tasks.c.id if oldest_first else tasks.c.id.desc()
    return [from_row(row) for row in connection.execute(query.order_by(order).limit(limit)).mappings()]


_NEEDING = tasks.c.state == TaskState.AWAITING_INPUT.value
"""Whatever is in this state waits for somebody."""


def needing_count(connection: sa.Connection, owner_id: str) -> int:
    """How many of an owner's wait for somebody, over all sessions."""
    found = sa.select(sa.func.count()).select_from(tasks).where(tasks.c.owner_id == owner_id, _NEEDING, THERE)
    return connection.execute(found).scalar_one()


def asking(
    connection: sa.Connection, owner_id: str, *, within: SessionId | None = None, before: str | None = None, limit: int
) -> list[Task]:
    """Open ones that ask for something, or have asked, newest first. `within`: of a session and all its descendants."""
    query = sa.select(tasks).where(
        tasks.c.owner_id == owner_id, tasks.c.ended_at.is_(None), tasks.c.request.is_not(None), THERE
    )
    if within is not None:
        tree = sa.select(sessions.c.id).where(sessions.c.id == within).cte("tree", recursive=True)
        tree = tree.union(sa.select(sessions.c.id).join(tree, sessions.c.parent_id == tree.c.id))
        query = query.where(tasks.c.session_id.in_(sa.select(tree.c.id)))
    if before is not None:
        query = query.where(tasks.c.id < before)
    return [from_row(row) for row in connection.execute(query.order_by(tasks.c.id.desc()).limit(limit)).mappings()]


_COUNT = sa.select(sa.func.count()).select_from(tasks).where(*_OPEN)
_COUNT_OPEN = Statement(_COUNT)
_COUNT_WAKING = Statement(_COUNT.where(tasks.c.wake == WakePolicy.ON_TERMINAL.value))


def open_count(connection: sa.Connection, session_id: SessionId, *, waking_only: bool = False) -> int:
    query = _COUNT_WAKING if waking_only else _COUNT_OPEN
    return query.scalar(connection, session=session_id)


def open_ids(connection: sa.Connection, session_id: SessionId) -> list[TaskId]:
    found = connection.execute(sa.select(tasks.c.id).where(*_OPEN), {"session": session_id})
    return [TaskId(each) for each in found.scalars()]


def open_or_named(connection: sa.Connection, session_id: SessionId, named: Collection[str], limit: int) -> list[Task]:
    """The newest of a session's open ones, and those of it with these ids; in the order in which they were made."""
    opened = sa.select(tasks).where(*_OPEN).order_by(tasks.c.id.desc()).limit(limit)
    found = [*connection.execute(opened, {"session": session_id}).mappings()]
    others = set(named) - {row["id"] for row in found}
    if others:
        asked = sa.select(tasks).where(tasks.c.id.in_(others), tasks.c.session_id == session_id)
        found += connection.execute(asked).mappings()
    return [from_row(row) for row in sorted(found, key=lambda row: row["id"])]


def open_of_kind(connection: sa.Connection, session_id: SessionId, kind: str) -> list[Task]:
    """The oldest first."""
    found = sa.select(tasks).where(*_OPEN, tasks.c.kind == kind).order_by(tasks.c.id)
    return [from_row(row) for row in connection.execute(found, {"session": session_id}).mappings()]


def open_of_turns(connection: sa.Connection, session_id: SessionId, turn_ids: Sequence[TurnId]) -> list[Task]:
    """What these turns have set going and is not over."""
    found = sa.select(tasks).where(*_OPEN, tasks.c.turn_id.in_(turn_ids)).order_by(tasks.c.id)
    return [from_row(row) for row in connection.execute(found, {"session": session_id}).mappings()]


def open_in_group(connection: sa.Connection, session_id: SessionId, group: str) -> int:
    query = sa.select(sa.func.count()).select_from(tasks).where(*_OPEN, tasks.c.group == group)
    return connection.execute(query, {"session": session_id}).scalar_one()


class Start(NamedTuple):
    """A task of a locked session as it begins: its state, and the worker that runs it as its first attempt, if any."""

    session: LockedSession
    new: NewTask
    state: TaskState
    worker_id: WorkerId | None


def insert(unit: Unit, start: Start) -> Task:
    (task,) = insert_all(unit, [start])
    return task


def insert_all(unit: Unit, starts: Sequence[Start]) -> list[Task]:
    values = [_values(unit, *each) for each in starts]
    unit.write_many(_INSERT, [[each[name] for name in _MADE] for each in values])
    return [from_row({**each, **_UNKNOWN}) for each in values]


def _clean(text: str | None) -> str | None:
    return None if text is None else clean.text(text)


def _values(
    unit: Unit, session: LockedSession, new: NewTask, state: TaskState, worker_id: WorkerId | None
) -> dict[str, Any]:
    is_run = state is TaskState.RUNNING
    return {
        "id": new.id,
        "session_id": session.id,
        "owner_id": session.owner_id,
        "turn_id": new.turn_id,
        "call_id": _clean(new.call_id),
        "kind": new.kind,
        "origin": new.origin.value,
        "agent": new.agent,
        "key": _clean(new.key),
        "tool": _clean(new.tool),
        "title": _clean(new.title),
        "spec": encode(new.spec or {}),
        "state": state.value,
        "detail": None,
        "progress": None if new.progress is None else encode(new.progress),
        "request": None if new.request is None else encode(new.request),
        "artifacts": "[]",
        "metadata": "{}",
        "links": "{}" if new.links is None else encode(new.links),
        "wake": new.wake.value,
        "group": _clean(new.group),
        "may_run_again": new.may_run_again,
        "progress_seconds": new.progress_seconds,
        "attempt": 1 if is_run else 0,
        "max_attempts": new.max_attempts,
        "worker_id": worker_id,
        "deadline_at": None if new.deadline_at is None else to_microseconds(new.deadline_at),
        "cancel_requested_at": unit.now_us if new.is_cancel_requested else None,
        "admitted_at": None,
        "created_at": unit.now_us,
        "started_at": to_microseconds(unit.now - new.ran_for) if is_run else None,
    }


def move(unit: Unit, task: Task, target: TaskState, **values: Any) -> Disposition:
    """Compare-and-set on state and attempt: the first to commit wins."""
    assert target in MOVES[task.state], f"{task.state} -> {target} is not a move"
    if target in ENDED:
        values["ended_at"] = unit.now_us
    values["state"] = target.value
    key = {"key": task.id, "source": task.state.value, "held": task.attempt}
    changed = _move(tuple(values)).run(unit.connection, **key, **values)
    return Disposition.MOVED if changed == 1 else Disposition.STALE_ATTEMPT


def may_write(unit: Unit, task_id: TaskId, attempt: int) -> bool:
    """Whether this attempt may still write: the fence of output and progress."""
    task = get(unit.connection, task_id)
    return task is not None and task.is_run_by(attempt)


def set_values(unit: Unit, task_id: TaskId, **values: Any) -> None:
    unit.write(_set(tuple(values)), key=task_id, **values)


def _update(names: tuple[str, ...]) -> sa.Update:
    update = sa.update(tasks).where(tasks.c.id == sa.bindparam("key"))
    return update.values({name: sa.bindparam(name) for name in names})


@cache
def _set(names: tuple[str, ...]) -> Statement:
    return Statement(_update(names))


@cache
def _move(names: tuple[str, ...]) -> Statement:
    held = (tasks.c.state == sa.bindparam("source"), tasks.c.attempt == sa.bindparam("held"))
    return Statement(_update(names).where(*held))


def running_without(connection: sa.Connection, alive: WorkerId) -> list[Task]:
    rows = connection.execute(
        sa.select(tasks).where(
            tasks.c.state.in_(WITH_WORKER), tasks.c.ended_at.is_(None), tasks.c.worker_id != alive, THERE
        )
    )
    return [from_row(row) for row in rows.mappings()]


def has_succeeded(connection: sa.Connection, session_id: SessionId, tool: str) -> bool:
    """Whether a call of the tool has, in the background of this session."""
    query = sa.select(tasks.c.id).where(
        tasks.c.session_id == session_id,
        tasks.c.tool == clean.text(tool),
        tasks.c.state == TaskState.SUCCEEDED.value,
    )
    return connection.execute(query.limit(1)).first() is not None


_QUEUED = (tasks.c.state == TaskState.QUEUED.value, tasks.c.ended_at.is_(None))
_SOME = 100


def overdue(unit: Unit) -> list[TaskId]:
    """Those past their deadline that no worker has, or that wait for an answer: nobody's timers run for them."""
    is_nobodys = sa.or_(tasks.c.worker_id.is_(None), tasks.c.state == TaskState.AWAITING_INPUT.value)
    found = sa.select(tasks.c.id).where(
        tasks.c.ended_at.is_(None), is_nobodys, tasks.c.deadline_at <= unit.now_us, THERE
    )
    return [TaskId(each) for each in unit.connection.execute(found.limit(_SOME)).scalars()]


def to_cancel(connection: sa.Connection, worker_id: WorkerId) -> list[TaskId]:
    """Those of a worker that were asked to cancel and go on."""
    asked = sa.select(tasks.c.id).where(
        tasks.c.state.in_(WITH_WORKER),
        tasks.c.ended_at.is_(None),
        tasks.c.worker_id == worker_id,
        tasks.c.cancel_requested_at.is_not(None),
    )
    return [TaskId(each) for each in connection.execute(asked).scalars()]


_COUNT_WAITING = (
    sa.select(sa.func.count())
    .select_from(tasks)
    .where(tasks.c.owner_id == sa.bindparam("owner"), tasks.c.worker_id.is_(None), *_QUEUED)
)


MAY_BE_RUN = sa.or_(tasks.c.origin != TaskOrigin.SPAWN.value, tasks.c.admitted_at.is_not(None))
"""Of those that are queued: all but spawned ones that wait for a place."""


def queued(connection: sa.Connection) -> list[Task]:
    """Those that a worker may begin, in the order in which they were made."""
    found = sa.select(tasks).where(*_QUEUED, MAY_BE_RUN, THERE)
    rows = connection.execute(found.order_by(tasks.c.created_at, tasks.c.id))
    return [from_row(row) for row in rows.mappings()]


def waiting_count(connection: sa.Connection, owner_id: str) -> int:
    """How many of an owner's tasks wait for a worker that runs them again."""
    return connection.execute(_COUNT_WAITING, {"owner": owner_id}).scalar_one()
