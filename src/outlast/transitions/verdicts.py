"""A person says what became of a call or a task whose effect nobody knows. The model is told who said what."""

import sqlalchemy as sa
from pydantic_core import to_json

from outlast import ids
from outlast.errors import Conflict, InvalidInput, NotFound, OutlastError
from outlast.events.event import Draft
from outlast.events.shapes import is_as_told
from outlast.events.types import EventType
from outlast.ids import SessionId, TaskId, TurnId
from outlast.store.group_commit import LeftOut
from outlast.store.repositories import folds, inputs, interrupted, tasks
from outlast.store.repositories.inputs import Input, InputKind
from outlast.store.repositories.stored_task import NewTask, Task
from outlast.store.tables import events
from outlast.store.unit import Unit
from outlast.transitions.tasks import many_tasks, task_moves
from outlast.transitions.tasks.many_tasks import Wanted
from outlast.transitions.turns import inbox, turn_start
from outlast.values import row_json
from outlast.wire.turn import Verdict

_SAYS = {
    Verdict.WORKED: "it took effect",
    Verdict.FAILED: "it did not take effect",
    Verdict.TRY_AGAIN: "it should be tried again",
}
_NAMES = ", ".join(each.value for each in Verdict)
UNKNOWN = ("interrupted", "abandoned", "crash_loop")
"""Kinds of errors after which nobody knows what a task has done."""


def parse(given: str) -> Verdict:
    try:
        return Verdict(given)
    except ValueError as exc:
        raise InvalidInput(f"{given!r} is not a verdict: use one of {_NAMES}.") from exc


def of_call(
    unit: Unit,
    session_id: SessionId,
    call_id: str,
    verdict: Verdict,
    *,
    by: str,
    note: str,
    owner_id: str,
) -> Input:
    """Once per call; the word goes to the model like any other input and starts a turn if the session is idle."""
    session = unit.lock(session_id, owner_id=owner_id)
    turn_id, tool = _interrupted(unit, session_id, call_id)
    key = f"settle:{call_id}"
    if inputs.by_key(unit.connection, session_id, key) is not None:
        raise Conflict("This call was already settled.", call_id=call_id)
    interrupted.remove(session, call_id)
    text = f"{by} says of the call {call_id} ({tool}), whose effect was unknown: {_SAYS[verdict]}."
    said = {"call_id": call_id, "verdict": verdict.value, "by": by, "note": note}
    unit.append(session_id, [Draft(EventType.CALL_SETTLED, {**said, "tool": tool}, turn_id)])
    turn_start.release(unit, session)
    return inbox.notify(
        unit,
        session_id,
        InputKind.SETTLEMENT,
        f"{text} {note}".strip(),
        body=said,
        idempotency_key=key,
    )


def _interrupted(unit: Unit, session_id: SessionId, call_id: str) -> tuple[TurnId | None, str]:
    """The turn of the call, and its tool."""
    named = f'"call_id":{to_json(call_id).decode()}'
    found = unit.connection.execute(
        sa.select(events.c.turn_id, events.c.data).where(
            events.c.session_id == session_id,
            events.c.type == EventType.CALL_ENDED.value,
            events.c.data.contains(named, autoescape=True),
        )
    )
    kept = folds.containing(unit.connection, session_id, named, type=EventType.CALL_ENDED)
    for row in (*found.mappings(), *kept):
        data = row_json.read_object(row["data"])
        if data.get("call_id") == call_id and is_as_told(EventType.CALL_ENDED, data):
            if data["outcome"] != "interrupted":
                raise Conflict(f"The call ended as {data['outcome']}: there is nothing to settle.")
            if not data.get("is_unknown", True):
                raise Conflict(
                    "The call did not run, may be run again without harm, or goes on as a task: nothing is unknown."
                )
            return row["turn_id"], data["tool"]
    raise NotFound("There is no such call.", id=call_id)


def of_task(unit: Unit, task_id: TaskId, verdict: Verdict, *, by: str, note: str, owner_id: str) -> Task:
    """Once. The task's state stands; the model is told who said what."""
    task = task_moves.owned(unit, task_id, owner_id)
    if task.error is None or task.error["kind"] not in UNKNOWN:
        raise Conflict(f"The task is {task.state.value}: there is nothing to settle.")
    if task.settled is not None:
        raise Conflict(f"The task was already settled by {task.settled['by']}.")
    again = _try_again(unit, task) if verdict is Verdict.TRY_AGAIN else None
    settled = {"verdict": verdict.value, "by": by, "note": note, "at": unit.now.isoformat()}
    links = task.links if again is None else {**task.links, "retried_as": again.id}
    tasks.set_values(unit, task_id, settled=tasks.encode(settled), links=tasks.encode(links))
    task_moves.tell(unit, EventType.TASK_CHANGED, task_moves.again(unit, task_id))
    inbox.withdraw_wakes(unit, task.session_id, [task_id])
    turn_start.release(unit, unit.lock(task.session_id))
    text = f"{by} says of task {task_id} ({task.title}), whose effect was unknown: {_word(verdict, again)}. {note}"
    inbox.notify(unit, task.session_id, InputKind.SETTLEMENT, text.strip())
    return task_moves.again(unit, task_id)


def _word(verdict: Verdict, again: Task | None) -> str:
    return verdict.value if again is None else f"try again. It runs now as task {again.id}; its end will be told here"


def _try_again(unit: Unit, task: Task) -> Task:
    """The same call with the same key, from its start, and as long as the first had."""
    if task.tool is None or not task.agent:
        raise Conflict("It is not known how to run this task again: say worked or failed, and send what is to be done.")
    new = NewTask(
        ids.task_id(),
        title=task.tool,
        agent=task.agent,
        turn_id=task.turn_id,
        call_id=task.output_id,
        tool=task.tool,
        spec={name: value for name, value in task.spec.items() if name != "parked"},
        may_run_again=task.may_run_again,
        progress_seconds=task.progress_seconds,
        deadline_at=None if task.deadline_at is None else unit.now + (task.deadline_at - task.since),
        links={"retry_of": task.id},
    )
    (made,) = many_tasks.accept(unit, [Wanted(task.session_id, new)], is_alone=True)
    if isinstance(made, OutlastError):
        raise made
    assert not isinstance(made, LeftOut), "it is asked for alone"
    return made
