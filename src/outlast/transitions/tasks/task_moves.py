"""The moves of one task as transactions: parked, ended, cancelled, orphaned, given back. `many_tasks` has many.

State change, event and wake commit together: every end is told once.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from outlast.errors import NotFound
from outlast.events.event import Draft
from outlast.events.outcome import Usage
from outlast.events.signals import task_topic
from outlast.events.types import EventType
from outlast.ids import TaskId, WorkerId
from outlast.store.outbox import Work
from outlast.store.repositories import inputs, spending, task_facts, tasks
from outlast.store.repositories.inputs import InputKind, InputState
from outlast.store.repositories.spending import Spent, stored
from outlast.store.repositories.stored_task import NewTask, Task, TaskOrigin, WakePolicy
from outlast.store.repositories.tasks import Start
from outlast.store.repositories.turns import Disposition
from outlast.store.unit import Unit
from outlast.transitions.kinds import registry
from outlast.transitions.task_errors import NOT_ANSWERED, VERDICTS
from outlast.transitions.tasks import monitors, open_request, places, wake
from outlast.transitions.turns import inbox, turn_start
from outlast.wire.task_state import TaskState


def make(unit: Unit, session_id: Any, new: NewTask, *, worker_id: WorkerId | None) -> Task:
    """A task for work that already runs in this process; None: for one that no worker runs, or not yet."""
    session, state = unit.lock(session_id), registry.first_state(new, worker_id)
    assert state is not TaskState.QUEUED, "work that waits for a worker is accepted"
    task = tasks.insert(unit, Start(session, new, state, worker_id))
    tell_created(unit, task)
    return task


def end(
    unit: Unit,
    task_id: TaskId,
    target: TaskState,
    *,
    attempt: int,
    result: Any = None,
    error: dict[str, Any] | None = None,
    content: Sequence[Any] = (),
) -> Disposition:
    """The first end wins, and wakes with its `content`: files and words beside the result, as they are stored.

    One that comes later is kept as the late outcome: shown, and wakes nobody.
    """
    task = locked(unit, task_id)
    if task is None:
        return Disposition.STALE_ATTEMPT
    if not task.is_run_by(attempt):
        late = {"state": target.value, "result": result, "error": error}
        is_outcome = error is None or error["kind"] not in VERDICTS
        if is_outcome and task.is_over and task.late_outcome is None and task.attempt == attempt:
            tasks.set_values(unit, task_id, late_outcome=tasks.encode(late))
            if target is not TaskState.CANCELED:  # that its code heeded its cancel is no news
                tell(unit, EventType.TASK_CHANGED, again(unit, task_id))
        return Disposition.STALE_ATTEMPT
    return _end(unit, task, target, result=result, error=error, content=content)


def _end(
    unit: Unit,
    task: Task,
    target: TaskState,
    *,
    result: Any = None,
    error: dict[str, Any] | None = None,
    content: Sequence[Any] = (),
) -> Disposition:
    moved = move(
        unit,
        task,
        target,
        result=None if result is None else tasks.encode(result),
        error=None if error is None else tasks.encode(error),
    )
    if moved is Disposition.MOVED:
        ended = replace(task, state=target, result=result, error=error, ended_at=unit.now)
        if open_request.is_open(ended):
            ended = replace(ended, request=open_request.close_at_end(unit, ended))
        tell(unit, EventType.TASK_ENDED, task_facts.with_outputs(unit.connection, [ended])[0])
        _wake(unit, ended, content)
        monitors.task_ended(unit, ended)
    return moved


def move(unit: Unit, task: Task, target: TaskState, **values: Any) -> Disposition:
    moves = registry.kind_of(task).moves
    assert target in moves[task.state], f"{task.state} -> {target} is not a move of a task of kind {task.kind!r}"
    disposition = tasks.move(unit, task, target, **values)
    if disposition is Disposition.MOVED:
        places.moved(unit, task, target)
    return disposition


def add_usage(unit: Unit, task_id: TaskId, owner_id: str, spent: Spent) -> None:
    """What agents used that its tool ran: counted whoever told its end, and shown with it from its next event on."""
    spending.add_spent(unit, owner_id, spent)
    task = tasks.get(unit.connection, task_id)
    if task is not None:
        total = Usage(**(task.usage or {}))
        total.add(stored(spent))
        tasks.set_values(unit, task_id, usage=tasks.encode(stored(total)))


def request_cancel(unit: Unit, task_id: TaskId, *, owner_id: str) -> Task:
    """Ask a task to cancel. One that no worker has is cancelled here; one that is over stays what it is."""
    task = owned(unit, task_id, owner_id)
    if task.is_over:
        return task
    if task.cancel_requested_at is not None:
        unit.signal(task_topic(task_id))  # whoever runs it may not have heard of the first time
        return task
    if task.worker_id is None:
        _end(unit, task, TaskState.CANCELED)
        return again(unit, task_id)
    tasks.set_values(unit, task_id, cancel_requested_at=unit.now_us)
    task = replace(task, cancel_requested_at=unit.now)
    tell(unit, EventType.TASK_CHANGED, task)
    return task


def change(unit: Unit, task_id: TaskId, *, attempt: int, **values: Any) -> Disposition:
    """New progress, detail or artifacts of a running task, told as a snapshot."""
    task = locked(unit, task_id)
    if task is None or not task.is_run_by(attempt):
        return Disposition.STALE_ATTEMPT
    tasks.set_values(unit, task_id, **values)
    tell(unit, EventType.TASK_CHANGED, again(unit, task_id))
    return Disposition.MOVED


def orphaned(unit: Unit, task: Task) -> None:
    """Its worker is dead: what becomes of it, its kind says. It is run again, or its end is told."""
    error = registry.kind_of(task).verdict(task, unit.now, unit.limits)
    if error is None:
        requeue(unit, task, attempt=task.attempt)
    else:
        end(unit, task.id, TaskState.FAILED, attempt=task.attempt, error=error)


def give_back(unit: Unit, claimed: Task) -> None:
    """It was claimed and not begun: whoever claims it next makes the attempt that this was to be."""
    task = locked(unit, claimed.id)
    if task is None or not task.is_run_by(claimed.attempt) or task.worker_id != claimed.worker_id:
        return
    if task.cancel_requested_at is not None:
        _end(unit, task, TaskState.CANCELED)
    else:
        requeue(unit, task, attempt=task.attempt - 1)


def requeue(unit: Unit, task: Task, *, attempt: int, **new: Any) -> None:
    """To a worker, for its first attempt or another one, with new values of other columns."""
    unit.lock(task.session_id)
    behind = tasks.waiting_count(unit.connection, task.owner_id)
    # What has not begun has no start; what runs again keeps its first one.
    values = {"worker_id": None, "attempt": attempt, **({} if attempt else {"started_at": None}), **new}
    is_new = task.origin is TaskOrigin.SPAWN and task.state is TaskState.AWAITING_INPUT
    if is_new:
        values["admitted_at"] = None  # while it waited its place was another's
    if move(unit, task, TaskState.QUEUED, **values) is not Disposition.MOVED:
        return
    if is_new:
        places.admit_next(unit, task.owner_id)
    else:
        unit.submit(work_of(task, behind=behind))
    tell(unit, EventType.TASK_CHANGED, again(unit, task.id))


def seconds_left(unit: Unit, task: Task) -> float | None:
    """To its deadline."""
    return None if task.deadline_at is None else (task.deadline_at - unit.now).total_seconds()


def expire(unit: Unit, task_id: TaskId) -> None:
    """Its deadline came while no worker had it, or while it waited for an answer."""
    task = locked(unit, task_id)
    if task is None or task.is_over:
        return
    if task.worker_id is not None and task.state is not TaskState.AWAITING_INPUT:
        return
    if task.deadline_at is not None and task.deadline_at <= unit.now:
        error = NOT_ANSWERED if task.state is TaskState.AWAITING_INPUT else registry.kind_of(task).timed_out
        _end(unit, task, TaskState.FAILED, error=error)


def work_of(task: Task, *, behind: int = 0) -> Work:
    """The more of an owner's tasks wait already, the later its next one is started."""
    return Work(task.id, task.owner_id, task.agent, priority=-behind)


def in_turn(waiting: Iterable[Task]) -> Iterator[Work]:
    """The work of all of them, so that no owner's many come before the first of another."""
    behind: Counter[str] = Counter()
    for task in waiting:
        yield work_of(task, behind=behind[task.owner_id])
        behind[task.owner_id] += 1


def tell_created(unit: Unit, task: Task) -> None:
    tell(unit, EventType.TASK_CREATED, task)
    if open_request.is_open(task):
        open_request.tell_opened(unit, task)


def tell(unit: Unit, type_: EventType, task: Task) -> None:
    unit.append(task.session_id, [Draft(type_, {"task": task.snapshot}, task.turn_id, task.id)])
    unit.signal(task_topic(task.id))


def _wake(unit: Unit, task: Task, content: Sequence[Any]) -> None:
    """One inbox row per end; a group wakes once all of it has ended; the last one need not wait for company."""
    if task.wake is WakePolicy.SILENT:
        return
    is_early = task.group is not None and tasks.open_in_group(unit.connection, task.session_id, task.group) > 0
    if task.group is not None and not is_early:
        inputs.release_group(unit, task.session_id, task.group)
    session = unit.lock(task.session_id)
    is_busy = session.turn_id is not None
    body: dict[str, Any] = {"tool": task.tool, "state": task.state.value, "title": task.title}
    if content:
        body["content"] = list(content)
    inbox.notify(
        unit,
        task.session_id,
        InputKind.WAKE,
        wake.text_of(task),
        body=body,
        task_id=task.id,
        state=InputState.GROUPED if is_early else InputState.WAITING,
    )
    if is_busy and tasks.open_count(unit.connection, task.session_id, waking_only=True) == 0:
        turn_start.hurry(unit, session)


def locked(unit: Unit, task_id: TaskId) -> Task | None:
    """The task with its session's lock held: session first, then task."""
    found = tasks.get(unit.connection, task_id)
    if found is None or unit.has_locked(found.session_id):
        return found
    if not unit.try_lock(found.session_id):
        return None
    return found if unit.is_serial else tasks.get(unit.connection, task_id)


def owned(unit: Unit, task_id: TaskId, owner_id: str) -> Task:
    return found(unit, task_id, owner_id=owner_id)


def found(unit: Unit, task_id: TaskId, *, owner_id: str | None = None) -> Task:
    """With its session's lock held. `owner_id` None: of whoever it is."""
    task = locked(unit, task_id)
    if task is None or owner_id not in (None, task.owner_id):
        raise NotFound("There is no such task.", id=task_id)
    return task


def again(unit: Unit, task_id: TaskId) -> Task:
    task = tasks.get(unit.connection, task_id)
    assert task is not None
    return task
