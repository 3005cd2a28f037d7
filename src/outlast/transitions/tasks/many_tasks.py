"""The moves of many tasks at once: accepted, claimed and ended, each group in one transaction.

Each is what `task_moves` does for one. Groups wait for nobody: what needs a session that somebody else holds, or more
than a group does, is left out (`store/group_commit.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from outlast.errors import NotFound, OutlastError
from outlast.events.types import EventType
from outlast.ids import SessionId, TaskId, WorkerId
from outlast.store.group_commit import LeftOut
from outlast.store.outbox import Work
from outlast.store.repositories import task_groups, tasks
from outlast.store.repositories.stored_task import NewTask, Task, TaskOrigin, WakePolicy
from outlast.store.repositories.tasks import Start
from outlast.store.repositories.turns import Disposition
from outlast.store.unit import Unit
from outlast.transitions.kinds import registry
from outlast.transitions.tasks import open_request, task_moves
from outlast.transitions.tasks.task_moves import tell
from outlast.wire.task_state import TaskState


@dataclass(frozen=True, slots=True)
class Wanted:
    """A task that is to be made, for a worker to start."""

    session_id: SessionId
    new: NewTask


@dataclass(frozen=True, slots=True)
class Ending:
    """What an attempt of a task came to."""

    session_id: SessionId
    task_id: TaskId
    attempt: int
    state: TaskState
    result: Any = None
    error: dict[str, Any] | None = None


Permit = Callable[[Unit, WorkerId], bool]
"""Asked in the transaction of every claim. False: there is a pause. Raises `NotNow` if this worker may not claim."""


class NotNow(OutlastError):
    """This worker cannot claim it in this moment; it is still there to claim."""

    code = "not_now"


@dataclass(frozen=True, slots=True)
class Claimed:
    """A task that this worker runs from now on, with the seconds left to its deadline."""

    task: Task
    deadline_in: float | None
    is_constrained: bool = True
    """Whether anything may have constrained its session's calls at that moment."""


def accept(unit: Unit, wanted: Sequence[Wanted], *, is_alone: bool) -> Sequence[Task | OutlastError | LeftOut]:
    """Tasks that begin in the process that makes them, if it has room, or wait for a worker or an answer.

    Whoever asks for a key that its session has gets the task that there is.
    """
    unit.lock_some([each.session_id for each in wanted], is_alone=is_alone)
    behind: dict[str, int] = {}
    made: list[Start] = []
    work: list[Work] = []
    kept = _kept(unit, wanted)
    for each in wanted:
        if unit.has_locked(each.session_id) and each.new.id not in kept:
            session = unit.lock(each.session_id)
            state = registry.first_state(each.new, None)
            if state is not TaskState.QUEUED:
                made.append(Start(session, each.new, state, None))
                continue
            owner_id = session.owner_id
            start = Work(each.new.id, owner_id, each.new.agent)
            worker_id = unit.claimant(start)
            if worker_id is None:
                if owner_id not in behind:
                    behind[owner_id] = tasks.waiting_count(unit.connection, owner_id)
                start.priority = -behind[owner_id]
                behind[owner_id] += 1
            made.append(Start(session, each.new, registry.first_state(each.new, worker_id), worker_id))
            work.append(start)
    inserted = {each.id: each for each in tasks.insert_all(unit, made)} if made else {}
    for task in inserted.values():
        task_moves.tell_created(unit, task)
    for start in work:
        task = inserted[TaskId(start.id)]
        start.claim = None if task.worker_id is None else _claimed(unit, task)
        unit.submit(start)
    is_known = is_alone or unit.is_serial
    missed = NotFound("There is no such session.") if is_known else LeftOut.HELD
    return [kept.get(each.new.id) or inserted.get(each.new.id, missed) for each in wanted]


def _kept(unit: Unit, wanted: Sequence[Wanted]) -> dict[TaskId, Task | LeftOut]:
    """Those that are not made: their key is there, or another of this group brings it."""
    kept: dict[TaskId, Task | LeftOut] = {}
    brought: set[tuple[SessionId, str]] = set()
    for each in wanted:
        key = each.new.key
        if key is not None and unit.has_locked(each.session_id):
            found = tasks.of_key(unit.connection, each.session_id, key)
            if found is not None:
                kept[each.new.id] = found
            elif (each.session_id, key) in brought:
                kept[each.new.id] = LeftOut.ALONE
            brought.add((each.session_id, key))
    return kept


def claim(
    unit: Unit, task_ids: Sequence[TaskId], worker_id: WorkerId, *, permit: Permit, is_alone: bool
) -> Sequence[Claimed | LeftOut | None]:
    """Take queued tasks for another attempt each. None: it is no longer there."""
    if not permit(unit, worker_id):
        return [None] * len(task_ids)
    sessions = task_groups.sessions_of(unit, task_ids)
    found = task_groups.lock(unit, sessions, is_alone=is_alone)
    queued = [each for each in found.values() if each.state is TaskState.QUEUED and not each.waits_for_place]
    claimed = {each.id: each for each in task_groups.claim(unit, queued, worker_id)}
    for each in claimed.values():
        tell(unit, EventType.TASK_CHANGED, each)

    def answer(task_id: TaskId) -> Claimed | LeftOut | None:
        task = claimed.pop(task_id, None)  # whoever asks for it a second time does not get it
        if task is not None:
            return _claimed(unit, task)
        is_held = task_id in sessions and not unit.has_locked(sessions[task_id])
        return LeftOut.HELD if is_held and not is_alone else None

    return [answer(each) for each in task_ids]


def _claimed(unit: Unit, task: Task) -> Claimed:
    return Claimed(task, task_moves.seconds_left(unit, task), unit.lock(task.session_id).is_constrained)


def end(unit: Unit, endings: Sequence[Ending], *, is_alone: bool) -> Sequence[Disposition | LeftOut]:
    """The first end wins, as in `task_moves.end`. In a group only what wakes nobody and frees no place, each once."""
    if is_alone:
        return [_end_alone(unit, each) for each in endings]
    found = task_groups.lock(unit, {each.task_id: each.session_id for each in endings}, is_alone=False)
    ended: dict[TaskId, Task] = {}
    answers: list[Disposition | LeftOut] = []
    for each in endings:
        task = found.get(each.task_id)
        if task is None or task.id in ended or not task.is_run_by(each.attempt) or not _is_quiet(task):
            is_there = unit.is_serial or unit.has_locked(each.session_id)
            answers.append(LeftOut.ALONE if is_there else LeftOut.HELD)
            continue
        ended[task.id] = replace(task, state=each.state, result=each.result, error=each.error, ended_at=unit.now)
        answers.append(Disposition.MOVED)
    task_groups.end(unit, list(ended.values()))
    for task in ended.values():
        tell(unit, EventType.TASK_ENDED, task)
    return answers


def _is_quiet(task: Task) -> bool:
    """Nobody need be told of its end: it wakes nobody, frees no place, and nobody was asked for anything."""
    is_silent = task.wake is WakePolicy.SILENT and task.origin is not TaskOrigin.SPAWN
    return is_silent and not open_request.is_open(task)


def _end_alone(unit: Unit, ending: Ending) -> Disposition:
    if not unit.try_lock(ending.session_id):
        return Disposition.STALE_ATTEMPT
    return task_moves.end(
        unit,
        ending.task_id,
        ending.state,
        attempt=ending.attempt,
        result=ending.result,
        error=ending.error,
    )
