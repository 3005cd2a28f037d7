"""Places for spawned tasks: so many of a session and of an owner run at once, the others wait in order, without a job.

Whoever frees a place admits the next in the same transaction. How many there are is decided for an owner by one
transaction after the other.
"""

from outlast.store.outbox import Work
from outlast.store.repositories import spawned
from outlast.store.repositories.stored_task import Task, TaskOrigin
from outlast.store.unit import OwnerLock, Unit
from outlast.wire.task_state import TaskState

_IN_PLACE = (TaskState.QUEUED, TaskState.RUNNING)


def admit_next(unit: Unit, owner_id: str) -> None:
    """Hand the owner's next waiting tasks to the engine, while there is room. After the locks of sessions.

    They may be of sessions that are not locked: nothing but that they are admitted is changed.
    """
    unit.lock_owner(owner_id, OwnerLock.ADMISSION)
    limits, admitted = unit.limits, spawned.count(unit.connection, owner_id)
    while admitted < limits.max_spawned_per_owner:
        task = spawned.next_to_admit(unit.connection, owner_id, per_session=limits.max_spawned_per_session)
        if task is None:
            return
        spawned.admit(unit, task)
        # The more of an owner's tasks have a place already, the later its next one is started.
        unit.submit(Work(task.id, owner_id, task.agent, priority=-admitted))
        admitted += 1


def moved(unit: Unit, task: Task, target: TaskState) -> None:
    """A task went from the state it is given in to another: if that frees a place, the next one gets it."""
    had_place = task.origin is TaskOrigin.SPAWN and task.admitted_at is not None and task.state in _IN_PLACE
    if had_place and target not in _IN_PLACE:
        admit_next(unit, task.owner_id)
