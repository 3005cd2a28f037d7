"""The kinds of task that there are."""

from collections.abc import Mapping

from outlast.ids import WorkerId
from outlast.store.repositories.stored_task import NewTask, Task
from outlast.transitions.kinds.call import CALL
from outlast.transitions.kinds.external import EXTERNAL
from outlast.transitions.kinds.kind import Kind
from outlast.transitions.kinds.monitor import MONITOR
from outlast.transitions.kinds.session import SESSION
from outlast.wire.task_state import TaskState

KINDS: Mapping[str, Kind] = {each.name: each for each in (CALL, SESSION, EXTERNAL, MONITOR)}


def kind_of(task: Task | NewTask) -> Kind:
    return KINDS[task.kind]


def first_state(new: NewTask, worker_id: WorkerId | None) -> TaskState:
    """What asks for something waits for the answer; what needs a worker and has none waits for one."""
    if new.request is not None:
        return TaskState.AWAITING_INPUT
    is_running = worker_id is not None or not kind_of(new).needs_worker
    return TaskState.RUNNING if is_running else TaskState.QUEUED
