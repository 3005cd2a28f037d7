"""Asking tasks to cancel, whatever their kind: work that was given to a sub-session is stopped there, all the way down.

In one commit for a whole tree. Its sessions are locked first, the deepest before those above.
"""

from outlast.events.types import EventType
from outlast.ids import SessionId, TaskId
from outlast.store.repositories import family, tasks
from outlast.store.repositories.stored_task import Task
from outlast.store.unit import Unit
from outlast.transitions import sub_sessions, turn
from outlast.transitions.kinds.session import SESSION
from outlast.transitions.tasks import task_moves
from outlast.transitions.turns import turn_start

BY_PARENT = "parent"


def request(unit: Unit, task_id: TaskId, *, owner_id: str) -> Task:
    """Ask a task to cancel; what is over stays what it is."""
    found = tasks.get(unit.connection, task_id)
    if found is None or found.owner_id != owner_id or found.kind != SESSION.name:
        return task_moves.request_cancel(unit, task_id, owner_id=owner_id)
    lock_below(unit, found)
    task = task_moves.owned(unit, task_id, owner_id)
    if not task.is_over:
        _cancel(unit, task)
    return task_moves.again(unit, task_id)


def request_all(unit: Unit, session_id: SessionId, *, owner_id: str) -> None:
    """Every open task of a session. Before anything else of the transaction: it locks what is below."""
    for task_id in tasks.open_ids(unit.connection, session_id):
        request(unit, task_id, owner_id=owner_id)


def expire(unit: Unit, task_id: TaskId) -> None:
    """Its deadline came and no worker has it. What a sub-session still does for it is stopped."""
    found = tasks.get(unit.connection, task_id)
    if found is not None and found.kind == SESSION.name:
        lock_below(unit, found)
        _count(unit, found)
    task_moves.expire(unit, task_id)
    if found is not None and found.kind == SESSION.name and task_moves.again(unit, task_id).is_over:
        _stop_work(unit, found)


def _count(unit: Unit, task: Task) -> None:
    """What the sub-session used for it, as long as that is there."""
    child_id = SessionId(task.links[sub_sessions.CHILD])
    if unit.try_lock(child_id):
        sub_sessions.count(unit, unit.lock(child_id), task)


def lock_below(unit: Unit, task: Task) -> None:
    child_id = SessionId(task.links[sub_sessions.CHILD])
    lock_tree(unit, child_id)


def lock_tree(unit: Unit, session_id: SessionId) -> None:
    """A session and all below it, the deepest first. Those that are being deleted are left out."""
    for each in [*family.below(unit.connection, session_id), session_id]:
        unit.try_lock(each)


def _cancel(unit: Unit, task: Task) -> None:
    if task.cancel_requested_at is None:
        tasks.set_values(unit, task.id, cancel_requested_at=unit.now_us)
        task_moves.tell(unit, EventType.TASK_CHANGED, task_moves.again(unit, task.id))
    _stop_work(unit, task)


def _stop_work(unit: Unit, task: Task) -> None:
    """Nothing of it begins any more, and what runs is told to stop. What a person does there goes on."""
    child_id = SessionId(task.links[sub_sessions.CHILD])
    if not unit.try_lock(child_id):
        return
    child = unit.lock(child_id)
    work = sub_sessions.take_back(unit, child, task)
    if child.turn_id == work.open_turn:  # its own, or none
        turn_start.hold(unit, child, "canceled")
    for each in tasks.open_of_turns(unit.connection, child_id, work.turn_ids):
        if each.kind == SESSION.name:
            _cancel(unit, each)
        else:
            task_moves.request_cancel(unit, each.id, owner_id=each.owner_id)
    if work.open_turn is not None:
        turn.stop(unit, child, work.open_turn, BY_PARENT)
    sub_sessions.work_changed(unit, child)
