"""A schedule is made: what it does and when is checked, and then it is kept."""

from outlast import ids
from outlast.errors import Conflict, Forbidden, IdempotencyMismatch, InvalidInput, LimitReached
from outlast.events.event import Draft
from outlast.events.signals import SCHEDULES
from outlast.events.types import EventType
from outlast.ids import SessionId
from outlast.store.repositories import schedules
from outlast.store.repositories.schedules import NewSchedule, Schedule, ScheduleKind
from outlast.store.repositories.stored_task import NewTask, WakePolicy
from outlast.store.unit import OwnerLock, Unit
from outlast.transitions.sessions import constraints
from outlast.transitions.sessions.profile import MAX_TITLE, check_name
from outlast.transitions.tasks import task_moves
from outlast.transitions.turns.inbox import check_text


def check(new: NewSchedule, *, max_text: int) -> None:
    """Raises `InvalidInput` that names the fault. What depends on the session is checked as it is made."""
    if new.title is not None:
        check_name(new.title, "title", most=MAX_TITLE)
    if new.kind is ScheduleKind.MESSAGE:
        check_text(new.text or "", max_text)
    if new.kind is ScheduleKind.MONITOR and new.when.cron is None:
        raise InvalidInput("A monitor looks again and again: give it a cron expression.", field="cron")


def create(unit: Unit, session_id: SessionId, new: NewSchedule, *, owner_id: str) -> Schedule:
    """Accepted means kept: from the commit on it fires. Whoever asks again with its key gets the one that there is."""
    session = unit.lock(session_id, owner_id=owner_id)
    known = None if new.key is None else schedules.of_key(unit.connection, session_id, new.key)
    if known is not None:
        if (known.kind, known.text, known.tool, known.cron) != (new.kind, new.text, new.tool, new.when.cron):
            raise IdempotencyMismatch("This idempotency key was used for another schedule: use a new one.", id=known.id)
        return known
    if session.is_archived:
        raise Conflict("The session is archived: take it out of the archive first.")
    if new.tool is not None:
        refusal = constraints.chain_of(unit.connection, session_id).sure_refusal(new.tool, new.spec.get("args", {}))
        if refusal is not None:
            raise Forbidden(refusal, tool=new.tool)
    _check_room(unit, session_id, owner_id)
    made = schedules.insert(unit, ids.schedule_id(), session_id, owner_id, new)
    if made.kind is ScheduleKind.MONITOR:
        made = _with_task(unit, made, session.agent)
    unit.append(session_id, [Draft(EventType.SCHEDULE_CREATED, {"schedule": made.snapshot})])
    unit.signal(SCHEDULES)
    return made


def _with_task(unit: Unit, schedule: Schedule, agent: str) -> Schedule:
    """A monitor is a task that runs without a worker; each of its checks is a task of its own."""
    new = NewTask(
        ids.task_id(),
        title=f"Monitor: {schedule.name}",
        agent=agent,
        kind="monitor",
        tool=schedule.tool,
        spec={"args": schedule.spec.get("args", {})},
        wake=WakePolicy.SILENT,
        links={"schedule": schedule.id},
    )
    task = task_moves.make(unit, schedule.session_id, new, worker_id=None)
    schedules.change(unit, schedule, task_id=task.id)
    made = schedules.get(unit.connection, schedule.id)
    assert made is not None
    return made


def _check_room(unit: Unit, session_id: SessionId, owner_id: str) -> None:
    unit.lock_owner(owner_id, OwnerLock.ADMISSION)  # or two sessions at once would each see room for one more
    limits = unit.limits
    of_session, of_owner = schedules.open_counts(unit.connection, session_id, owner_id)
    for count, most, whose in (
        (of_session, limits.max_schedules_per_session, "The session has"),
        (of_owner, limits.max_schedules_per_owner, "You have"),
    ):
        if count >= most:
            raise LimitReached(f"{whose} {count} schedules, as many as may be: delete one first.", limit=most)
