"""Spawning: a tool is set going on purpose, as a task of a session, for the model or for a person."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from typing import Any

from outlast import ids
from outlast.errors import Forbidden, IdempotencyMismatch, TooManyTasks
from outlast.events.types import EventType
from outlast.ids import SessionId, TurnId
from outlast.store.repositories import spawned, tasks
from outlast.store.repositories.stored_task import NewTask, Task, TaskOrigin, WakePolicy
from outlast.store.repositories.tasks import Start
from outlast.store.unit import Unit
from outlast.transitions.sessions import constraints
from outlast.transitions.sessions.profile import MAX_NAME, MAX_TITLE, check_name
from outlast.transitions.tasks import monitors, places
from outlast.transitions.tasks.task_moves import again, tell
from outlast.wire.task_state import TaskState

_NAMED = 20
"""So many tools are named to whoever asks for one that is not there."""


@dataclass(frozen=True, slots=True)
class Spawn:
    """What is to be run, with arguments that fit its tool, and what its tool says of itself."""

    tool: str
    args: Mapping[str, Any]
    agent: str | None = None
    """None: the session's own."""
    title: str | None = None
    group: str | None = None
    wake: WakePolicy = WakePolicy.ON_TERMINAL
    key: str | None = None
    """There is one task with this key in the session, however often it is asked for."""
    turn_id: TurnId | None = None
    may_run_again: bool = False
    deadline: timedelta = timedelta(hours=24)
    """From its start on: what waits for a place does not age."""
    progress_deadline: timedelta | None = None
    max_attempts: int | None = None
    narration: Mapping[str, str] = field(default_factory=dict[str, str])
    schedule_id: str | None = None
    """The schedule that sets it going."""
    is_check: bool = False
    """It is a check of that schedule's monitor."""


def check(*, title: str | None, group: str | None) -> None:
    """Raises `InvalidInput` that names the fault."""
    if title is not None:
        check_name(title, "title", most=MAX_TITLE)
    if group is not None:
        check_name(group, "group", most=MAX_NAME)


def unknown_tool(name: str, known: Sequence[str]) -> str:
    """With the names that are near, or some that there are."""
    near = get_close_matches(name, known, n=3, cutoff=0.5) or sorted(known)[:_NAMED]
    there = f" Did you mean one of: {', '.join(near)}?" if near else ""
    return f"There is no tool {name!r} that could be spawned.{there}"


def spawn(unit: Unit, session_id: SessionId, wanted: Spawn, *, owner_id: str) -> Task:
    """Accepted means kept: it begins when there is a place, and says its number until then.

    Whoever asks again with the same key gets the task that there is. Refused when the session may not call the tool,
    or has as many open tasks as it may; then the open ones are listed.
    """
    session = unit.lock(session_id, owner_id=owner_id)
    known = None if wanted.key is None else tasks.of_key(unit.connection, session_id, wanted.key)
    if known is not None:
        return _repeated(unit, known, wanted)
    refusal = constraints.chain_of(unit.connection, session_id).sure_refusal(wanted.tool, wanted.args)
    if refusal is not None:
        raise Forbidden(refusal, tool=wanted.tool)
    _check_room(unit, session_id)
    new = _new(wanted, wanted.agent or session.agent)
    task = tasks.insert(unit, Start(session, new, TaskState.QUEUED, None))
    places.admit_next(unit, owner_id)
    made = _as_it_is(unit, task)
    tell(unit, EventType.TASK_CREATED, made)
    return made


def _new(wanted: Spawn, agent: str) -> NewTask:
    progress = wanted.progress_deadline
    return NewTask(
        ids.task_id(),
        title=wanted.title or wanted.tool,
        agent=agent,
        turn_id=wanted.turn_id,
        tool=wanted.tool,
        spec=_spec(wanted),
        wake=wanted.wake,
        group=wanted.group,
        may_run_again=wanted.may_run_again,
        progress_seconds=None if progress is None else progress.total_seconds(),
        key=wanted.key,
        max_attempts=wanted.max_attempts,
        origin=TaskOrigin.SPAWN,
        links=None if wanted.schedule_id is None else {"schedule": wanted.schedule_id},
    )


def _spec(wanted: Spawn) -> dict[str, Any]:
    return {
        "args": dict(wanted.args),
        "deadline_seconds": wanted.deadline.total_seconds(),
        **({"narration": dict(wanted.narration)} if wanted.narration else {}),
        **({monitors.CHECK_OF: wanted.schedule_id} if wanted.is_check else {}),
    }


def _repeated(unit: Unit, known: Task, wanted: Spawn) -> Task:
    if known.tool != wanted.tool or known.spec.get("args") != dict(wanted.args):
        raise IdempotencyMismatch("This idempotency key was used for another task: use a new one.", task_id=known.id)
    return _as_it_is(unit, known)


def _as_it_is(unit: Unit, task: Task) -> Task:
    (found,) = spawned.with_places(unit.connection, [again(unit, task.id)])
    return found


def _check_room(unit: Unit, session_id: SessionId) -> None:
    most = unit.limits.max_open_tasks
    if tasks.open_count(unit.connection, session_id) < most:
        return
    found = tasks.page(unit.connection, session_id=session_id, is_open=True, limit=most)
    listed = [{"task_id": each.id, "title": each.title, "state": each.state.value} for each in reversed(found)]
    names = ", ".join(f"{each['task_id']} ({each['title']}, {each['state']})" for each in listed)
    raise TooManyTasks(
        f"The session has {len(listed)} open tasks, as many as it may: wait for one to end, or cancel one. "
        f"Open are: {names}.",
        limit=most,
        open=listed,
    )
