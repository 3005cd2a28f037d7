"""Sub-sessions: work that a session gives to another one, and how what becomes of it comes back.

The work is a task of the parent, bound to one input of the child. It ends in the commit in which the last turn of that
input's work ends, and its end wakes the parent like that of any task: this is the only place that knows the chain.
Locks go upward, a child's before its parent's.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import sqlalchemy as sa

from outlast import ids
from outlast.errors import Conflict, NotFound, TooManyRequests
from outlast.ids import InputId, SessionId, TurnId
from outlast.store.locked_session import LockedSession
from outlast.store.repositories import family, folds, inputs, sessions, tasks, turns, works
from outlast.store.repositories.inputs import InputState
from outlast.store.repositories.spending import stored
from outlast.store.repositories.stored_task import NewTask, Task, WakePolicy
from outlast.store.repositories.turns import TurnRow, TurnState
from outlast.store.repositories.works import InputWork
from outlast.store.unit import Unit
from outlast.transitions.kinds.session import SESSION
from outlast.transitions.sessions import creation, preview
from outlast.transitions.sessions.creation import NewSession
from outlast.transitions.tasks import task_moves
from outlast.transitions.turns import inbox
from outlast.wire.task_state import TaskState

TOOL = "run_sub_session"
CHILD, INPUT = "child_session", "child_input"
"""Links of the parent's task."""
NO_RESULT = {"kind": "no_result", "message": "The sub-session ended without reporting a result that fits."}
GONE = {"kind": "canceled", "message": "Its message was taken back before the sub-session saw it."}
_BY = "stopped_by"
_STOPPED_BY = "{by} stopped the sub-session."
_STOPPED: Mapping[str | None, str] = {
    "deleted": "The sub-session was deleted.",
    "interrupt": "Another message interrupted the sub-session.",
    "parent": "It was canceled.",
}


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a parent asks of a sub-session. `key`: asked for again under it, it is the same work."""

    prompt: str
    agent: str
    key: str
    title: str | None = None
    turn_id: TurnId | None = None
    call_id: str | None = None
    result_schema: Mapping[str, Any] | None = None
    wake: WakePolicy = WakePolicy.ON_TERMINAL
    deadline: timedelta | None = None


def begin(
    unit: Unit, parent_id: SessionId, asked: Assignment, *, owner_id: str, child_id: SessionId | None = None
) -> Task:
    """Give work to a new sub-session, or to the one that is named. In one commit: task, session, input and turn."""
    known = tasks.of_key(unit.connection, parent_id, asked.key)
    if known is not None:
        return known
    if child_id is not None:
        _lock_descendant(unit, child_id, parent_id, owner_id)
    parent = unit.lock(parent_id, owner_id=owner_id)
    known = tasks.of_key(unit.connection, parent_id, asked.key)
    if known is not None:
        return known
    _check_room(unit, parent, is_new=child_id is None)
    task_id = ids.task_id()
    child = unit.lock(child_id) if child_id is not None else _make_child(unit, parent, asked)
    accepted = inbox.assign(unit, child, asked.prompt, task_id)
    new = NewTask(
        task_id,
        asked.title or preview.of_text(asked.prompt) or TOOL,
        agent=child.agent,
        kind=SESSION.name,
        turn_id=asked.turn_id,
        call_id=asked.call_id,
        tool=TOOL,
        spec={} if asked.result_schema is None else {"result_schema": dict(asked.result_schema)},
        wake=asked.wake,
        deadline_at=None if asked.deadline is None else unit.now + asked.deadline,
        links={CHILD: child.id, INPUT: accepted.id},
        key=asked.key,
    )
    return task_moves.make(unit, parent_id, new, worker_id=None)


def _lock_descendant(unit: Unit, child_id: SessionId, parent_id: SessionId, owner_id: str) -> None:
    """The same words whether it is not there, another's, or no descendant."""
    if parent_id not in family.ancestors(unit.connection, child_id):
        raise NotFound("There is no such sub-session of this session.", id=child_id)
    unit.lock(child_id, owner_id=owner_id)


def _check_room(unit: Unit, parent: LockedSession, *, is_new: bool) -> None:
    open_now = tasks.page(unit.connection, session_id=parent.id, is_open=True, limit=unit.limits.max_open_tasks)
    children = [each for each in open_now if each.kind == SESSION.name]
    if len(children) >= unit.limits.max_children or len(open_now) >= unit.limits.max_open_tasks:
        listed = ", ".join(f"{each.id} ({each.title})" for each in open_now)
        raise TooManyRequests(
            f"{len(children)} sub-sessions and {len(open_now)} tasks are open here already: wait for one or cancel "
            f"one. Open: {listed}"
        )
    if is_new and len(family.ancestors(unit.connection, parent.id)) + 1 >= unit.limits.max_depth:
        raise Conflict(f"Sub-sessions are at most {unit.limits.max_depth} deep, and this is the last: do it here.")


def _make_child(unit: Unit, parent: LockedSession, asked: Assignment) -> LockedSession:
    new = NewSession(
        agent=asked.agent,
        title=asked.title,
        budget=sessions.budget_of(parent.budget_seconds),
        origin={"parent_id": parent.id},
        preview=preview.of_text(asked.prompt),
        parent_id=parent.id,
    )
    return unit.lock(creation.make(unit, ids.session_id(), new, (), owner_id=parent.owner_id, key=None))


def lock_parent(unit: Unit, session: LockedSession) -> None:
    """Before anything that may end work of this session: the end goes on above it, and those locks come now.

    In its parent; and in ancestors that have gone on with it themselves. While it is locked nobody gives it more work.
    """
    if session.parent_id is None:
        return
    unit.try_lock(session.parent_id)
    above = family.ancestors(unit.connection, session.id)
    asking = {task.session_id for task in _bound(unit.connection, session.id, above[1:])}
    for each in above:
        if each in asking:
            unit.try_lock(each)


def work_changed(unit: Unit, session: LockedSession) -> None:
    """A turn or a task of the session has ended, or an input was taken back: end the parent's tasks it was for."""
    for task in bound(unit, session):
        _end_if_over(unit, session, task)


def stopped(unit: Unit, session: LockedSession, *, by: str) -> None:
    """A person stopped the session: what the parent asked of it is canceled. A turn that runs ends it as it ends."""
    for task in bound(unit, session):
        work = _work_of(unit, session, task)
        if work.open_turn is None:
            _take_back(unit, session, task)
            _count(unit, task, work)
            _cancel(unit, task, _STOPPED_BY.format(by=by))
        else:
            tasks.set_values(unit, task.id, spec=tasks.encode({**task.spec, _BY: by}))


def deleted(unit: Unit, session: LockedSession) -> None:
    """The session is no longer there: what the parent asked of it is canceled."""
    for task in bound(unit, session):
        _count(unit, task, _work_of(unit, session, task))
        _cancel(unit, task, _STOPPED["deleted"])


def count(unit: Unit, session: LockedSession, task: Task) -> None:
    """Show with the parent's task what its work has used so far: for one that ends while that work still runs."""
    _count(unit, task, _work_of(unit, session, task))


def take_back(unit: Unit, session: LockedSession, task: Task) -> InputWork:
    """The parent's task is canceled: its input is not delivered any more. Gives what runs of its work."""
    _take_back(unit, session, task)
    return _work_of(unit, session, task)


def bound(unit: Unit, session: LockedSession) -> Iterator[Task]:
    """The open tasks of its ancestors that this session works on; the parent's first."""
    if session.parent_id is not None:
        locked = [each for each in family.ancestors(unit.connection, session.id) if unit.has_locked(each)]
        yield from _bound(unit.connection, session.id, locked)


def _bound(connection: sa.Connection, session_id: SessionId, above: Iterable[SessionId]) -> Iterator[Task]:
    for each in above:
        for task in tasks.open_of_kind(connection, each, SESSION.name):
            if task.links.get(CHILD) == session_id:
                yield task


def asked_by(unit: Unit, session: LockedSession, turn_id: TurnId | None) -> Task | None:
    """The task above that a turn of this session works for; None where a person set it going."""
    return next((task for task in bound(unit, session) if turn_id in _work_of(unit, session, task).turn_ids), None)


def report(unit: Unit, session_id: SessionId, turn_id: TurnId, value: Any) -> bool:
    """Keep the result that the turn's work came to. False: nobody asked for one."""
    session = unit.lock(session_id)
    lock_parent(unit, session)
    for task in bound(unit, session):
        if "result_schema" in task.spec and turn_id in _work_of(unit, session, task).turn_ids:
            tasks.set_values(unit, task.id, spec=tasks.encode({**task.spec, "reported": value}))
            return True
    return False


def schemas_for(connection: sa.Connection, session_id: SessionId, turn_id: TurnId) -> list[Mapping[str, Any]]:
    """What the results must fit that are asked of this turn."""
    above = family.ancestors(connection, session_id)
    return [
        task.spec["result_schema"]
        for task in _bound(connection, session_id, above)
        if "result_schema" in task.spec
        and turn_id in works.of_input(connection, session_id, InputId(task.links[INPUT])).turn_ids
    ]


def _work_of(unit: Unit, session: LockedSession, task: Task) -> InputWork:
    return works.of_input(unit.connection, session.id, InputId(task.links[INPUT]))


def _take_back(unit: Unit, session: LockedSession, task: Task) -> None:
    given = inputs.get(unit.connection, session.id, InputId(task.links[INPUT]))
    if given is not None and given.state is InputState.WAITING:
        inbox.drop(unit, session, given)


def _end_if_over(unit: Unit, session: LockedSession, task: Task) -> None:
    work = _work_of(unit, session, task)
    is_canceling = task.cancel_requested_at is not None
    last = turns.get(unit.connection, work.turn_ids[-1]) if work.turn_ids else None
    is_cut_off = last is not None and _is_cut_off(session, last)
    if work.is_gone:
        _cancel(unit, task, GONE["message"])
    elif work.is_over or (work.open_turn is None and (is_canceling or is_cut_off)):
        _count(unit, task, work)
        if last is None or (is_canceling and not work.is_over):
            _cancel(unit, task, _STOPPED["parent"])
        else:
            _end_as(unit, session, task, last)


def _is_cut_off(session: LockedSession, last: TurnRow) -> bool:
    """A person stopped it, or it failed and is held: what its tasks come to starts no turn of its own any more."""
    if last.state is TurnState.STOPPED:
        return last.stop_reason == "user"
    return last.state is TurnState.FAILED and bool(session.is_held)


def _end_as(unit: Unit, session: LockedSession, task: Task, last: TurnRow) -> None:
    """As its last turn ended: an earlier one's answer is never given as this one's."""
    if last.state is TurnState.STOPPED:
        who = task.spec.get(_BY, "A person")
        _cancel(unit, task, _STOPPED.get(last.stop_reason, _STOPPED_BY.format(by=who)))
    elif last.state is TurnState.FAILED:
        error = last.error or {"kind": "failed", "message": "The sub-session failed."}
        told = {name: error[name] for name in ("kind", "message", "reference") if name in error}
        _end(unit, task, TaskState.FAILED, error=told)
    elif "result_schema" not in task.spec:
        _end(unit, task, TaskState.SUCCEEDED, result=_answer(unit, session, last))
    elif "reported" in task.spec:
        _end(unit, task, TaskState.SUCCEEDED, result=task.spec["reported"])
    else:
        _end(unit, task, TaskState.FAILED, error=NO_RESULT)


def _answer(unit: Unit, session: LockedSession, last: TurnRow) -> Any:
    """The turn's output as it is stored; of a large one what stands in its place, which says where the rest is."""
    for event in reversed(unit.committed.events):
        if event.turn_id == last.id and event.type == "turn.completed":
            return _output(event.data, session.id)
    return _output(folds.end_of(unit.connection, session.id, last.id), session.id)


def _output(data: Mapping[str, Any], session_id: SessionId) -> Any:
    output: Any = data.get("output")
    if isinstance(output, dict) and "$file" in output:
        kept = cast(dict[str, Any], output)["$file"]
        return {"truncated": True, "preview": kept.get("preview"), "session_id": session_id}
    return data.get("text") if output is None else cast(Any, output)


def _count(unit: Unit, task: Task, work: InputWork) -> None:
    """What the work used, and all below it, is shown with the task. Its owner was charged for it as it ran."""
    used = works.used(unit.connection, SessionId(task.links[CHILD]), work.turn_ids)
    tasks.set_values(unit, task.id, usage=tasks.encode(stored(used)))


def _cancel(unit: Unit, task: Task, why: str) -> None:
    tasks.set_values(unit, task.id, detail=why)
    _end(unit, task_moves.again(unit, task.id), TaskState.CANCELED)


def _end(unit: Unit, task: Task, state: TaskState, *, result: Any = None, error: dict[str, Any] | None = None) -> None:
    task_moves.end(unit, task.id, state, attempt=task.attempt, result=result, error=error)
