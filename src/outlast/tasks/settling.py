"""A person says what became of a task whose effect nobody knows. "Try again" makes a new task, linked to it."""

from outlast import ids
from outlast.errors import Conflict, OutlastError
from outlast.events.types import EventType
from outlast.ids import TaskId
from outlast.sessions import inbox, turn
from outlast.sessions.inbox import Limits
from outlast.sessions.settlement import Verdict
from outlast.store import inputs, tasks
from outlast.store.inputs import InputKind
from outlast.store.tasks import NewTask, Task
from outlast.store.together import LeftOut
from outlast.store.unit import Unit
from outlast.tasks import groups, service
from outlast.tasks.groups import Wanted

UNKNOWN = ("interrupted", "abandoned", "crash_loop")
"""Kinds of errors after which nobody knows what a task has done."""


def settle(unit: Unit, task_id: TaskId, verdict: Verdict, *, by: str, note: str, owner_id: str, limits: Limits) -> Task:
    """Once. The task's state stands; the model is told who said what."""
    task = service.owned(unit, task_id, owner_id)
    if task.error is None or task.error["kind"] not in UNKNOWN:
        raise Conflict(f"The task is {task.state.value}: there is nothing to settle.")
    if task.settled is not None:
        raise Conflict(f"The task was already settled by {task.settled['by']}.")
    again = _try_again(unit, task) if verdict is Verdict.TRY_AGAIN else None
    settled = {"verdict": verdict.value, "by": by, "note": note, "at": unit.now.isoformat()}
    links = task.links if again is None else {**task.links, "retried_as": again.id}
    tasks.set_values(unit, task_id, settled=tasks.encode(settled), links=tasks.encode(links))
    service.tell(unit, EventType.TASK_CHANGED, service.again(unit, task_id))
    inputs.withdraw_wakes(unit, task.session_id, [task_id])
    turn.release(unit, unit.lock(task.session_id))
    text = f"{by} says of task {task_id} ({task.title}), whose effect was unknown: {_word(verdict, again)}. {note}"
    inbox.notify(unit, task.session_id, InputKind.SETTLEMENT, text.strip(), limits=limits)
    return service.again(unit, task_id)


def _word(verdict: Verdict, again: Task | None) -> str:
    return verdict.value if again is None else f"try again. It runs now as task {again.id}; its end will be told here"


def _try_again(unit: Unit, task: Task) -> Task:
    """The same call with the same key, from its start, and as long as the first had."""
    if task.tool is None or task.call_id is None or not task.agent:
        raise Conflict("It is not known how to run this task again: say worked or failed, and send what is to be done.")
    new = NewTask(
        ids.task_id(),
        title=task.tool,
        turn_id=task.turn_id,
        call_id=task.call_id,
        tool=task.tool,
        spec={name: value for name, value in task.spec.items() if name != "parked"},
        may_run_again=task.may_run_again,
        progress_seconds=task.progress_seconds,
        deadline_at=None if task.deadline_at is None else unit.now + (task.deadline_at - task.since),
        links={"retry_of": task.id},
    )
    (made,) = groups.accept(unit, [Wanted(task.session_id, new)], is_alone=True)
    if isinstance(made, OutlastError):
        raise made
    assert not isinstance(made, LeftOut), "it is asked for alone"
    return made
