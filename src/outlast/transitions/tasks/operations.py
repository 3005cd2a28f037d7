"""Operations elsewhere: opened with a token that completes them, completed once, withdrawn.

A completion ends the task of kind `external`. The first one counts; those that come after the end change nothing.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from outlast.errors import Conflict, NotFound
from outlast.events.types import EventType
from outlast.ids import SessionId, TaskId
from outlast.store.repositories import outputs, tasks
from outlast.store.repositories.stored_task import NewTask, Task, WakePolicy
from outlast.store.repositories.turns import Disposition
from outlast.store.unit import Unit
from outlast.transitions.kinds.external import EXTERNAL
from outlast.transitions.task_errors import VERDICTS
from outlast.transitions.tasks import task_moves
from outlast.wire.task_state import TaskState

_NO_HASH = "0" * 64


@dataclass(frozen=True, slots=True)
class Opened:
    """An operation for which a token was made. `is_new`: no earlier attempt of its call has opened it."""

    task: Task
    is_new: bool


@dataclass(frozen=True, slots=True)
class Completion:
    """What an operation came to: a result, or an error. `file` has the whole of a result of which this is a view."""

    result: Any = None
    error: dict[str, Any] | None = None
    file: str | None = None
    characters: int = 0

    @property
    def state(self) -> TaskState:
        return TaskState.SUCCEEDED if self.error is None else TaskState.FAILED


@dataclass(frozen=True, slots=True)
class Completed:
    """The task as it stands. `applied`: this completion ended it."""

    task: Task
    applied: bool

    @property
    def id(self) -> TaskId:
        return self.task.id

    @property
    def state(self) -> TaskState:
        return self.task.state


class TooManyOpen(Exception):
    """The session has as many open tasks as it may: these."""

    def __init__(self, open_ids: Sequence[TaskId]) -> None:
        super().__init__(f"{len(open_ids)} tasks are open: {', '.join(open_ids)}.")


def hash_of(token: str) -> str:
    """A token has 256 random bits: no guessing gets anywhere, so it needs no slow hash."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def open_(unit: Unit, session_id: SessionId, new: NewTask, *, token_hash: str, due: datetime, max_open: int) -> Opened:
    """The operation of that key with one more token; those that it had stay valid until its end."""
    unit.lock(session_id)
    assert new.key is not None, "another attempt of its call must find it"
    found = tasks.of_key(unit.connection, session_id, new.key)
    if found is None:
        open_ids = tasks.open_ids(unit.connection, session_id)
        if len(open_ids) >= max_open:
            raise TooManyOpen(open_ids)
        found = task_moves.make(unit, session_id, replace(new, deadline_at=due), worker_id=None)
    hashes = _hashes(found)
    if token_hash not in hashes:
        tasks.set_values(unit, found.id, spec=tasks.encode({**found.spec, "tokens": [*hashes, token_hash]}))
    return Opened(found, is_new=found.id == new.id)


def _hashes(task: Task) -> list[str]:
    hashes: Any = task.spec.get("tokens")
    return [each for each in cast(list[Any], hashes) if isinstance(each, str)] if isinstance(hashes, list) else []


def is_opened_by(task: Task | None, token: str) -> bool:
    """Whether a token is one of this operation's. It takes the same work whether there is such a task or not."""
    given = hash_of(token)
    known = [] if task is None else _hashes(task)
    matches = [hmac.compare_digest(given, each) for each in known or [_NO_HASH]]
    return True in matches


def complete(unit: Unit, task_id: TaskId, completion: Completion, *, owner_id: str | None = None) -> Completed:
    """`owner_id` None: of whoever it is. One that comes after a deadline or a cancel is kept as the late outcome."""
    task = task_moves.found(unit, task_id, owner_id=owner_id)
    if task.kind != EXTERNAL.name:
        raise Conflict("Only operations that are done elsewhere are completed: this task is run here.")
    if task.is_over and not _ended_without(task):
        return Completed(task, applied=False)
    if completion.file is not None:
        outputs.keep_result(
            unit, task.session_id, task.output_id, file=completion.file, characters=completion.characters
        )
    moved = task_moves.end(
        unit,
        task_id,
        completion.state,
        attempt=task.attempt,
        result=completion.result,
        error=completion.error,
    )
    return Completed(task_moves.again(unit, task_id), applied=moved is Disposition.MOVED)


def _ended_without(task: Task) -> bool:
    """It ended without a completion, and none has come since."""
    is_verdict = task.error is not None and task.error["kind"] in VERDICTS
    return (is_verdict or task.state is TaskState.CANCELED) and task.late_outcome is None


def hand_out(unit: Unit, task_id: TaskId, *, attempt: int) -> Disposition:
    """The code of a call has left its work to something outside: its task is an operation from now on."""
    task = task_moves.found(unit, task_id)
    if not task.is_run_by(attempt):
        return Disposition.STALE_ATTEMPT
    tasks.set_values(unit, task_id, kind=EXTERNAL.name, worker_id=None)
    task_moves.tell(unit, EventType.TASK_CHANGED, task_moves.again(unit, task_id))
    return Disposition.MOVED


def withdraw(unit: Unit, task_id: TaskId) -> bool:
    """Its tool takes it back and tells of that itself, so it wakes nobody. False: it had ended already."""
    try:
        task = task_moves.found(unit, task_id)
    except NotFound:
        return False
    if task.is_over:
        return False
    tasks.set_values(unit, task_id, wake=WakePolicy.SILENT.value)
    return task_moves.end(unit, task_id, TaskState.CANCELED, attempt=task.attempt) is Disposition.MOVED
