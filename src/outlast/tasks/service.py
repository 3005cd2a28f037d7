"""The moves of a task as transactions: made, ended, found interrupted. State and event in one commit."""

from typing import Any

from outlast.calls.call import RunningCall
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.ids import TaskId, WorkerId
from outlast.sessions.turn import Fence
from outlast.store import tasks
from outlast.store.tasks import Task, TaskState, WakePolicy
from outlast.store.turns import Disposition
from outlast.store.unit import Unit

INTERRUPTED = {
    "kind": "interrupted",
    "message": "It was running when its process ended. It may or may not have taken effect.",
}
ABANDONED = {
    "kind": "abandoned",
    "message": "It ignored its cancel and may still be running. It may or may not take effect.",
}


def make_silent(unit: Unit, fence: Fence, task_id: TaskId, call: RunningCall, worker_id: WorkerId) -> Task:
    """Own a call that did not confirm its cancel, so that its end is told somewhere."""
    session = unit.lock(fence.session_id)
    task = tasks.insert(
        unit,
        session,
        task_id,
        kind="call",
        title=f"{call.tool} (cancel requested)",
        wake=WakePolicy.SILENT,
        worker_id=worker_id,
        turn_id=fence.turn_id,
        call_id=call.call_id,
        tool=call.tool,
        is_cancel_requested=True,
    )
    _tell(unit, EventType.TASK_CREATED, task)
    return task


def end(
    unit: Unit, task_id: TaskId, target: TaskState, *, attempt: int, result: Any = None, error: Any = None
) -> Disposition:
    """The first end wins. One that comes later is kept as the late outcome and changes nothing else."""
    found = tasks.get(unit.connection, task_id)
    if found is None:
        return Disposition.STALE_ATTEMPT
    unit.lock(found.session_id)
    task = tasks.get(unit.connection, task_id)
    assert task is not None
    if task.is_over or task.attempt != attempt:
        late = {"state": target.value, "result": result, "error": error}
        tasks.set_values(unit, task_id, late_outcome=tasks.encode(late))
        return Disposition.STALE_ATTEMPT
    moved = tasks.move(
        unit,
        task,
        target,
        result=None if result is None else tasks.encode(result),
        error=None if error is None else tasks.encode(error),
    )
    if moved is Disposition.MOVED:
        ended = tasks.get(unit.connection, task_id)
        assert ended is not None
        _tell(unit, EventType.TASK_ENDED, ended)
    return moved


def _tell(unit: Unit, type_: EventType, task: Task) -> None:
    unit.append(task.session_id, [Draft(type_, {"task": task.snapshot}, task.turn_id, task.id)])
