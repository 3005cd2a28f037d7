"""Requests of tasks: questions asked and answered, approvals decided. The first valid answer wins.

A question is asked by a tool that runs and goes on in place; an approval is decided before its tool is run. Models
answer questions only: an approval or a connection is for people.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from outlast import ids
from outlast.clock import to_microseconds
from outlast.errors import AttemptLost, Conflict, Forbidden, InvalidInput, TooManyRequests
from outlast.events.foreign import REQUEST
from outlast.events.types import EventType
from outlast.ids import TaskId
from outlast.store.repositories import tasks
from outlast.store.repositories.inputs import InputKind
from outlast.store.repositories.stored_task import Task
from outlast.store.unit import Unit
from outlast.transitions.sessions import constraints
from outlast.transitions.sessions.profile import check_json
from outlast.transitions.tasks import open_request, task_moves
from outlast.transitions.turns import inbox
from outlast.values import clean, json_schema
from outlast.values.secrets import Secrets
from outlast.wire.task_state import TaskState

MOST_CHARACTERS = 4_000
"""Of a prompt, of a reason."""
MOST_BYTES = 16 * 1024
"""Of an answer, of changed arguments."""
MOST_QUESTIONS = 20
"""Of one call: their answers are kept with it."""

_NAMES: Mapping[str, str] = {"approval": "an approval", "connection": "a connection"}

ByKind = Literal["person", "model"]
Mask = Callable[[Any], Any]
Kind = Literal["approval", "question", "connection"]


@dataclass(frozen=True, slots=True)
class Question:
    """What a tool asks, as the so manieth of its call: the same again is the same question."""

    ordinal: int
    prompt: str
    schema: dict[str, Any] | None = None

    def is_of(self, kept: dict[str, Any]) -> bool:
        asked = (kept.get("ordinal"), kept.get("prompt"), kept.get("schema"))
        return asked == (self.ordinal, self.prompt, self.schema)


@dataclass(frozen=True, slots=True)
class Given:
    """The answer to a question."""

    value: Any


def check_question(prompt: str, schema: Any) -> dict[str, Any] | None:
    """Refuse what nobody could answer; gives the schema as it is stored."""
    if not prompt.strip() or len(prompt) > MOST_CHARACTERS:
        raise InvalidInput(f"A question has 1 to {MOST_CHARACTERS} characters.")
    return None if schema is None else json_schema.check(schema)


def given(task: Task, question: Question) -> Given | None:
    """What was already answered to this question of the call, in this attempt or an earlier one."""
    kept = (each for each in task.spec.get("answers", ()) if question.is_of(each))
    return next((Given(each["value"]) for each in kept), None)


def ask(unit: Unit, task_id: TaskId, question: Question, *, attempt: int, is_told: bool = False) -> Given | None:
    """The tool of a running task waits for an answer, or gets the one that was given already.

    A question that is open is not asked anew: it keeps its id. `is_told`: the model hears of it by another way.
    """
    task = task_moves.locked(unit, task_id)
    if task is None or not task.is_run_by(attempt):
        raise AttemptLost("The call was given to another worker, or is over.")
    answer = given(task, question)
    if answer is not None:
        return answer
    is_same = open_request.is_open(task) and question.is_of(task.request or {})
    if not is_same:
        if question.ordinal >= MOST_QUESTIONS:
            raise TooManyRequests(f"A call asks at most {MOST_QUESTIONS} questions.")
        if open_request.is_open(task):
            open_request.close(unit, task, "withdrawn")
    request = task.request if is_same else _question(unit, task, question)
    values: dict[str, Any] = {"request": tasks.encode(request), **_deadline(request)}
    if task.state is not TaskState.AWAITING_INPUT:
        task_moves.move(unit, task, TaskState.AWAITING_INPUT, **values)
    else:
        tasks.set_values(unit, task_id, **values)
    asking = task_moves.again(unit, task_id)
    task_moves.tell(unit, EventType.TASK_CHANGED, asking)
    if not is_same:
        open_request.tell_opened(unit, asking)
        if not is_told:
            inbox.notify(unit, task.session_id, InputKind.REQUEST, notice(asking), task_id=task_id)
    return None


def _question(unit: Unit, task: Task, question: Question) -> dict[str, Any]:
    request: dict[str, Any] = {
        "id": ids.request_id(),
        "kind": "question",
        "prompt": clean.text(question.prompt),
        "ordinal": question.ordinal,
        "asked_at": unit.now.isoformat(),
        "deadline_at": (unit.now + unit.limits.request_deadline).isoformat(),
    }
    if question.schema is not None:
        request["schema"] = question.schema
    left = task_moves.seconds_left(unit, task)
    return request if left is None else {**request, "left_seconds": left}


def request_of(
    unit: Unit,
    kind: Kind,
    prompt: str,
    details: Mapping[str, Any],
    *,
    secrets: Secrets,
    waits: timedelta | None,
    runs: timedelta | None,
) -> dict[str, Any]:
    """What a call asks for before it runs. `waits`: how long at most; `runs`: how long it may take from then on."""
    request = {
        **REQUEST(secrets, dict(details)),
        "id": ids.request_id(),
        "kind": kind,
        "prompt": secrets.mask(prompt),
        "asked_at": unit.now.isoformat(),
        "deadline_at": (unit.now + (waits or unit.limits.request_deadline)).isoformat(),
    }
    return request if runs is None else {**request, "left_seconds": runs.total_seconds()}


def deadline_of(request: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(request["deadline_at"])


def wait(
    unit: Unit, task_id: TaskId, request: Mapping[str, Any], *, attempt: int, spec: Mapping[str, Any] | None = None
) -> bool:
    """A claimed call that is to be run, or run again, waits for somebody, without a worker.

    `spec`: what is kept of it beside what there is. False: it is no longer this attempt's.
    """
    task = task_moves.locked(unit, task_id)
    if task is None or not task.is_run_by(attempt):
        return False
    values = {"request": tasks.encode(dict(request)), "worker_id": None, **_deadline(dict(request))}
    if spec is not None:
        values["spec"] = tasks.encode({**task.spec, **spec})
    task_moves.move(unit, task, TaskState.AWAITING_INPUT, **values)
    asking = task_moves.again(unit, task_id)
    task_moves.tell(unit, EventType.TASK_CHANGED, asking)
    open_request.tell_opened(unit, asking)
    inbox.notify(unit, task.session_id, InputKind.REQUEST, notice(asking), task_id=task_id)
    return True


def _deadline(request: dict[str, Any] | None) -> dict[str, Any]:
    """While it waits, the request's own; the call's goes on counting when it runs."""
    deadline = None if request is None else request.get("deadline_at")
    return {} if deadline is None else {"deadline_at": to_microseconds(datetime.fromisoformat(deadline))}


def notice(task: Task) -> str:
    """What the model of the session is told of a question."""
    assert task.request is not None
    if task.request["kind"] != "question":
        return f"Background task {task.id} ({task.title}) waits for a person: {task.request['prompt']} Tell the user."
    fits = "" if "schema" not in task.request else " with a value that fits the schema that it shows"
    return (
        f"Background task {task.id} ({task.title}) waits for an answer. It asks: {task.request['prompt']}\n"
        f"If you know the answer, give it with check_background(task_id={task.id!r}, reply=...){fits}; "
        "else ask the user, who can also answer it directly."
    )


def answer(
    unit: Unit,
    task_id: TaskId,
    value: Any,
    *,
    owner_id: str,
    by: str,
    by_kind: ByKind = "person",
    request_id: str | None = None,
    mask: Mask = lambda value: value,
) -> Task:
    """Answer a question, once: it goes on where it waits, or finds the answer when it is run again.

    `request_id`: only this one, if the task asks several. What does not fit is refused, and the question stays open.
    `mask`: how the answer is told to all but the tool that asked.
    """
    task = task_moves.owned(unit, task_id, owner_id)
    if task.request is not None and task.request["kind"] != "question":
        if by_kind == "model":
            raise Forbidden(f"It waits for {_NAMES[task.request['kind']]}, which only a person gives: tell the user.")
        raise InvalidInput(_how_else(task))
    request = open_request.check_open(task)
    if request_id is not None and request_id != request["id"]:
        raise Conflict("The task asks something else by now: look at its request.", request_id=request["id"])
    value = _fitting(request, value)
    kept = {name: request.get(name) for name in ("ordinal", "prompt", "schema")}
    answers = [*task.spec.get("answers", ()), {**kept, "value": value, "by": by, "at": unit.now.isoformat()}]
    tasks.set_values(unit, task_id, spec=tasks.encode({**task.spec, "answers": answers}))
    open_request.close(unit, task, "answered", by=by, by_kind=by_kind, value=mask(value))
    _go_on(unit, task)
    return task_moves.again(unit, task_id)


def _how_else(task: Task) -> str:
    assert task.request is not None
    if task.request["kind"] == "connection":
        return f"It waits for a connection: set it with `outlast connections set {task.request.get('provider')}`."
    return "It waits for an approval: approve or refuse it."


def _fitting(request: dict[str, Any], value: Any) -> Any:
    if len(check_json(value, "answer")) > MOST_BYTES:
        raise InvalidInput(f"An answer has at most {MOST_BYTES} bytes.")
    value = clean.value(value)
    schema = request.get("schema")
    if schema is None and not isinstance(value, str):
        raise InvalidInput("The question is answered with a text.")
    faults = [] if schema is None else json_schema.faults(schema, value)
    if faults:
        raise InvalidInput(f"The answer does not fit the question's schema: {'; '.join(faults)}", schema=schema)
    return value


def _go_on(unit: Unit, task: Task) -> None:
    """What keeps its worker goes on there, without queueing; of one that is run again, the answer waits for it."""
    assert task.request is not None
    if task.state is not TaskState.AWAITING_INPUT:
        task_moves.tell(unit, EventType.TASK_CHANGED, task_moves.again(unit, task.id))
        return
    left = task.request.get("left_seconds")
    deadline = None if left is None else to_microseconds(unit.now + timedelta(seconds=left))
    if task.worker_id is None:
        task_moves.requeue(unit, task, attempt=task.attempt, deadline_at=deadline)
        return
    task_moves.move(unit, task, TaskState.RUNNING, deadline_at=deadline)
    task_moves.tell(unit, EventType.TASK_CHANGED, task_moves.again(unit, task.id))


def connected(unit: Unit, task: Task) -> None:
    """The connection that a call waits for is there: the call is run."""
    open_request.close(unit, task, "answered", by=task.owner_id)
    _go_on(unit, task)


def withdraw(unit: Unit, task_id: TaskId, request_id: str, *, attempt: int) -> None:
    """The tool no longer waits for an answer, and goes on without it."""
    task = task_moves.locked(unit, task_id)
    if task is None or not task.is_run_by(attempt) or task.request is None:
        return
    if open_request.is_open(task) and task.request["id"] == request_id:
        open_request.close(unit, task, "withdrawn")
        _go_on(unit, task)


def approve(
    unit: Unit,
    task_id: TaskId,
    *,
    owner_id: str,
    by: str,
    args: Any = None,
    always: str | bool = False,
    mask: Mask = lambda value: value,
) -> Task:
    """Let the call run, with other arguments if some are given. It passes the other gates, and is not asked for again.

    `always`: nor are later calls of the tool in this session, or those that this rule is about. The caller is a person,
    or has their word: no model ever decides this. `mask`: how the arguments are told to all but the tool.
    """
    task, request = _approval(unit, task_id, owner_id)
    spec = {**task.spec, "approved": {"by": by, "at": unit.now.isoformat(), "request_id": request["id"]}}
    if args is not None:
        spec["args"] = _arguments(task, args)
    if always:
        rule = _rule(task, always, spec["args"] if args is not None else request.get("args"))
        constraints.add_always(unit, task.session_id, rule, by=by, owner_id=owner_id)
    tasks.set_values(unit, task_id, spec=tasks.encode(spec))
    changed = {"args_changed": args is not None, **({} if args is None else {"args": mask(spec["args"])})}
    open_request.close(unit, task, "approved", by=by, told={"args": request.get("args")}, **changed)
    _go_on(unit, replace(task, spec=spec))
    return task_moves.again(unit, task_id)


def _rule(task: Task, always: str | bool, args: Any) -> str:
    """The rule to keep: about this very call, among others."""
    rule = always if isinstance(always, str) else str(task.tool)
    if not constraints.is_about(rule, str(task.tool), args):
        raise InvalidInput(f"The rule {rule!r} is not about this call of {task.tool!r}: name its tool.")
    return rule


def refuse(unit: Unit, task_id: TaskId, *, owner_id: str, by: str, reason: str = "") -> Task:
    """The call is not run: its task ends, and the model is told who refused it and why."""
    task, request = _approval(unit, task_id, owner_id)
    if len(reason) > MOST_CHARACTERS:
        raise InvalidInput(f"A reason has at most {MOST_CHARACTERS} characters.")
    reason = clean.text(reason)
    why = {"reason": reason} if reason else {}
    open_request.close(unit, task, "refused", by=by, told={"args": request.get("args")}, **why)
    said = f"{by} refused it, and it was not run." + (f" Reason: {reason}" if reason else "")
    error = {"kind": "rejected", "message": said}
    task_moves.end(unit, task_id, TaskState.FAILED, attempt=task.attempt, error=error)
    return task_moves.again(unit, task_id)


def _approval(unit: Unit, task_id: TaskId, owner_id: str) -> tuple[Task, dict[str, Any]]:
    task = task_moves.owned(unit, task_id, owner_id)
    request = open_request.check_open(task)
    if request["kind"] == "question":
        raise InvalidInput("It asks a question: reply to it.")
    if request["kind"] != "approval":
        raise InvalidInput(_how_else(task))
    return task, request


def _arguments(task: Task, args: Any) -> Any:
    if not isinstance(args, dict):
        raise InvalidInput("The arguments of a call are an object, such as {'city': 'Paris'}.")
    if len(check_json(args, "arguments")) > MOST_BYTES:
        raise InvalidInput(f"Changed arguments have at most {MOST_BYTES} bytes.")
    plain = clean.value(args)
    schema = task.spec.get("args_schema")
    faults = [] if schema is None else json_schema.faults(schema, plain)
    if faults:
        raise InvalidInput(f"The arguments do not fit the tool: {'; '.join(faults)}")
    return plain
