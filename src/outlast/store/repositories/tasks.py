"""Tasks: rows, states as data, and the compare-and-set moves between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from outlast.clock import from_microseconds, to_microseconds
from outlast.ids import OwnerId, SessionId, TaskId, TurnId, WorkerId
from outlast.store.locked_session import LockedSession
from outlast.store.repositories import task_snapshot
from outlast.store.repositories.turns import ERROR, Disposition
from outlast.store.sql.bulk import insert_many
from outlast.store.sql.statement import Row, Statement
from outlast.store.tables import sessions, tasks
from outlast.store.unit import Unit
from outlast.values import clean, row_json
from outlast.values.shape import Shape, instant, list_of, maybe, number, object_of, one_of, text, whole
from outlast.wire.task_state import ENDED, TaskState

MOVES: Mapping[TaskState, frozenset[TaskState]] = {
    TaskState.QUEUED: frozenset({TaskState.RUNNING, TaskState.AWAITING_INPUT, TaskState.CANCELED, TaskState.FAILED}),
    TaskState.RUNNING: frozenset({TaskState.AWAITING_INPUT, TaskState.QUEUED, *ENDED}),
    TaskState.AWAITING_INPUT: frozenset({TaskState.RUNNING, TaskState.QUEUED, *ENDED}),
    TaskState.SUCCEEDED: frozenset(),
    TaskState.FAILED: frozenset(),
    TaskState.CANCELED: frozenset(),
}
WITH_WORKER = (TaskState.RUNNING.value, TaskState.AWAITING_INPUT.value)
"""States in which a task may have a worker: a question keeps the one that it waits in."""


class TaskOrigin(StrEnum):
    """`SPAWN`: set going on purpose; such tasks have places, and wait for them in order."""

    CALL = "call"
    SPAWN = "spawn"


class WakePolicy(StrEnum):
    ON_TERMINAL = "on_terminal"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Task:
    """Durable background work as it is stored. `result` may be a view of something larger (`read_output`)."""

    id: TaskId
    session_id: SessionId
    owner_id: OwnerId
    turn_id: TurnId | None
    call_id: str | None
    kind: str
    agent: str
    """The one whose tool it runs."""
    tool: str | None
    title: str
    spec: dict[str, Any]
    state: TaskState
    detail: str | None
    progress: dict[str, Any] | None
    result: Any
    error: dict[str, Any] | None
    late_outcome: dict[str, Any] | None
    artifacts: list[dict[str, Any]]
    metadata: dict[str, Any]
    wake: WakePolicy
    group: str | None
    may_run_again: bool
    attempt: int
    worker_id: WorkerId | None
    progress_seconds: float | None
    deadline_at: datetime | None
    cancel_requested_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    settled: dict[str, Any] | None = None
    """What a person said of it whose effect nobody knew: verdict, by, note, at."""
    usage: dict[str, Any] | None = None
    """What agents used that its tool ran. None: it ran none, or that is not known yet."""
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    """`retry_of`: the task that it tries again. `retried_as`: the one that tries it again."""
    key: str | None = None
    """In its session there is one task with this key, however often it is asked for."""
    request: dict[str, Any] | None = None
    """What it asks a person for: id, kind (approval, question, connection), prompt, asked_at, and how it was closed."""
    max_attempts: int | None = None
    """How often it may be tried, where that is not what the worker's limits say."""
    origin: TaskOrigin = TaskOrigin.CALL
    admitted_at: datetime | None = None
    """When a spawned task was given a place among those that may run."""
    output_size: int | None = None
    """Characters that it has put out, where they were asked for."""
    last_line: str | None = None
    """Of its output, likewise."""
    place: int | None = None
    """Of a spawned task that waits for a place: its number among those of its session that do, where it was asked."""

    @property
    def waits_for_place(self) -> bool:
        """Nobody is told to run it before it is admitted."""
        return self.origin is TaskOrigin.SPAWN and self.admitted_at is None and self.state is TaskState.QUEUED

    @property
    def output_id(self) -> str:
        """Whose output and result are its own: the model's call, or of a task that no call asked for, the task itself.

        It is also what the tool's idempotency key is made of, so a task that tries another again has that one's.
        """
        return self.call_id or self.id

    @property
    def parked(self) -> dict[str, Any] | None:
        """Of a call that goes on without its turn: `reason` (budget, steering, stop), and how long it had run."""
        return self.spec.get("parked")

    @property
    def ran_seconds(self) -> float | None:
        """How long it ran, once it is over: from the start of its call, also where that was parked later."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at).total_seconds()

    @property
    def since(self) -> datetime:
        """When it began; of one that waits to begin, when it was made."""
        return self.started_at or self.created_at

    @property
    def is_over(self) -> bool:
        return self.state in ENDED

    def is_run_by(self, attempt: int) -> bool:
        """Whether this attempt may still write. A task that was given back is run by nobody until it is claimed."""
        return self.attempt == attempt and not self.is_over and self.state is not TaskState.QUEUED

    @property
    def needs(self) -> str | None:
        """What it waits for somebody to do: an approval, an answer (question), a connection."""
        return None if self.request is None or "closed" in self.request else self.request["kind"]

    @property
    def snapshot(self) -> dict[str, Any]:
        """What an event tells of a task: everything but its bodies."""
        return task_snapshot.of(self)


@dataclass(frozen=True, slots=True)
class NewTask:
    """What a task begins with. One that has a `request` waits for its answer first."""

    id: TaskId
    title: str
    agent: str = field(kw_only=True)
    """The one whose tool it runs."""
    kind: str = "call"
    turn_id: TurnId | None = None
    call_id: str | None = None
    tool: str | None = None
    spec: Mapping[str, Any] | None = None
    wake: WakePolicy = WakePolicy.ON_TERMINAL
    group: str | None = None
    may_run_again: bool = False
    progress: Mapping[str, Any] | None = None
    progress_seconds: float | None = None
    deadline_at: datetime | None = None
    is_cancel_requested: bool = False
    links: Mapping[str, str] | None = None
    ran_for: timedelta = timedelta()
    """How long the work had been running when it became a task."""
    key: str | None = None
    """There is one task with this key in the session: who asks for it again gets the one that there is."""
    request: Mapping[str, Any] | None = None
    max_attempts: int | None = None
    origin: TaskOrigin = TaskOrigin.CALL


_SPEC: Shape = {
    **{"parked": maybe(object_of()), "budget_seconds": maybe(number), "deadline_seconds": maybe(number)},
    **{"answers": maybe(list_of(object_of())), "approved": maybe(object_of()), "args_schema": maybe(object_of())},
}
_PROGRESS: Shape = {"current": number, "total": maybe(number), "unit": maybe(text), "label": maybe(text)}
_SETTLED: Shape = {
    "verdict": one_of("worked", "failed", "try_again"),
    **{"by": text, "note": maybe(text), "at": maybe(instant)},
}
_REQUEST: Shape = {
    **{"id": text, "kind": one_of("approval", "question", "connection"), "prompt": text, "asked_at": instant},
    **{"url": maybe(text), "provider": maybe(text), "deadline_at": maybe(instant)},
    **{
        "ordinal": maybe(whole),
        "left_seconds": maybe(number),
        "closed": maybe(object_of({"how": text, "at": instant})),
    },
}
_USAGE: Shape = {
    **dict.fromkeys(("requests", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"), whole),
    "cost_microdollars": maybe(whole),
}
_LINKS = ("retry_of", "retried_as", "child_session", "child_input")


def from_row(row: Row) -> Task:
    return Task(
        id=TaskId(row["id"]),
        session_id=SessionId(row["session_id"]),
        owner_id=OwnerId(row["owner_id"]),
        turn_id=row["turn_id"],
        call_id=row["call_id"],
        kind=row["kind"],
        agent=row["agent"],
        tool=row["tool"],
        title=row["title"],
        spec=row_json.read_object(row["spec"], _SPEC),
        state=TaskState(row["state"]),
        detail=row["detail"],
        progress=_object(row["progress"], _PROGRESS),
        result=_decode(row["result"]),
        error=_object(row["error"], ERROR),
        late_outcome=_object(row["late_outcome"]),
        artifacts=row_json.read_list(row["artifacts"]),
        metadata=row_json.read_object(row["metadata"]),
        wake=WakePolicy(row["wake"]),
        group=row["group"],
        may_run_again=row["may_run_again"],
        attempt=row["attempt"],
        worker_id=row["worker_id"],
        progress_seconds=row["progress_seconds"],
        deadline_at=_instant(row["deadline_at"]),
        cancel_requested_at=_instant(row["cancel_requested_at"]),
        created_at=from_microseconds(row["created_at"]),
        started_at=_instant(row["started_at"]),
        ended_at=_instant(row["ended_at"]),
        settled=_readable(row["settled"], _SETTLED),
        usage=_readable(row["usage"], _USAGE),
        links={
            name: each for name, each in row_json.read_object(row["links"]).items() if name in _LINKS and text(each)
        },
        key=row["key"],
        request=_readable(row["request"], _REQUEST),
        max_attempts=row["max_attempts"],
        origin=TaskOrigin(row["origin"]),
        admitted_at=_instant(row["admitted_at"]),
    )


def _decode(value: str | None) -> Any:
    return None if value is None else row_json.read(value)


def _object(value: str | None, shape: Shape | None = None) -> dict[str, Any] | None:
    return None if value is None else row_json.read_object(value, shape)


def _readable(value: str | None, shape: Shape) -> dict[str, Any] | None:
    """What cannot be read says nothing."""
    found = _object(value, shape)
    return None if row_json.is_unreadable(found) else found


def _instant(value: int | None) -> datetime | None:
    return None if value is None else from_microseconds(value)


def encode(value: Any) -> str:
    return row_json.write(value)


THERE = sa.exists().where(sessions.c.id == tasks.c.session_id, sessions.c.deleted_at.is_(None))
"""A task of a session that is being deleted is no longer there."""
_GET = Statement(sa.select(tasks).where(tasks.c.id == sa.bindparam("id"), THERE))
_UNKNOWN: Mapping[str, Any] = dict.fromkeys(("result", "error", "late_outcome", "ended_at", "settled", "usage"))
"""Columns that a task gets when it ends, or later."""
_MADE = [column.name for column in tasks.c if column.name not in _UNKNOWN]
_INSERT = insert_many(tasks, _MADE)
_OPEN = (tasks.c.session_id == sa.bindparam("session"), tasks.c.ended_at.is_(None))


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
    before: str | None = None,
    limit: int = 100,
) -> list[Task]:
    """Newest first; `before` is the id of the last one already seen."""
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
    if before is not None:
        query = query.where(tasks.c.id < before)
    return [from_row(row) for row in connection.execute(query.order_by(tasks.c.id.desc()).limit(limit)).mappings()]


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


def holds(unit: Unit, task_id: TaskId, attempt: int) -> bool:
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
