"""What people and models do with a schedule that there is: edit, pause, resume, delete. Under its session's lock."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outlast.errors import Conflict, Forbidden, InvalidInput, NotFound
from outlast.events.event import Draft
from outlast.events.signals import SCHEDULES
from outlast.events.types import EventType
from outlast.ids import ScheduleId, SessionId
from outlast.store.repositories import fires, schedules, tasks
from outlast.store.repositories.schedules import Missed, Overlap, Schedule, ScheduleKind, ScheduleState
from outlast.store.unit import Unit
from outlast.timing.when import When
from outlast.tool_hints import UNSET, Unset
from outlast.transitions.sessions import constraints
from outlast.transitions.sessions.profile import MAX_TITLE, check_name
from outlast.transitions.tasks import task_moves
from outlast.transitions.turns.inbox import check_text

ARCHIVED = "session_archived"


@dataclass(frozen=True, slots=True)
class Edit:
    """New values; what is UNSET stays as it is."""

    when: When | Unset = UNSET
    title: str | Unset | None = UNSET
    text: str | Unset = UNSET
    args: Mapping[str, Any] | Unset = UNSET
    condition: Mapping[str, Any] | Unset = UNSET
    missed: Missed | Unset = UNSET
    overlap: Overlap | Unset = UNSET


def found(
    unit: Unit, schedule_id: ScheduleId, *, owner_id: str | None = None, session_id: SessionId | None = None
) -> Schedule:
    """With its session's lock held. Another owner's or session's and an unknown one are the same `NotFound`."""
    seen = schedules.get(unit.connection, schedule_id)
    is_theirs = seen is not None and owner_id in (None, seen.owner_id) and session_id in (None, seen.session_id)
    if seen is None or not is_theirs or not unit.try_lock(seen.session_id):
        raise _no_such(schedule_id)
    row = schedules.get(unit.connection, schedule_id)
    if row is None:
        raise _no_such(schedule_id)
    return row


def edit(unit: Unit, schedule_id: ScheduleId, wanted: Edit, *, owner_id: str) -> Schedule:
    """What it does and when, from now on. A new time counts from now; one that is paused stays so."""
    row = found(unit, schedule_id, owner_id=owner_id)
    if row.state is ScheduleState.ENDED:
        raise Conflict("The schedule has ended: make a new one.", state=row.state)
    values = {**_what(unit, row, wanted), **_when(unit, row, wanted)}
    for name in ("missed", "overlap"):
        value = getattr(wanted, name)
        if not isinstance(value, Unset):
            values[name] = value.value
    return _changed(unit, row, EventType.SCHEDULE_CHANGED, values) if values else row


def _what(unit: Unit, row: Schedule, wanted: Edit) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if not isinstance(wanted.title, Unset):
        if wanted.title is not None:
            check_name(wanted.title, "title", most=MAX_TITLE)
        values["title"] = wanted.title
    if not isinstance(wanted.text, Unset):
        if row.kind is not ScheduleKind.MESSAGE:
            raise InvalidInput("The schedule runs a tool and says nothing: it has no text.", field="text")
        check_text(wanted.text, unit.limits.max_text)
        values["text"] = wanted.text
    spec = dict(row.spec)
    if not isinstance(wanted.args, Unset):
        assert row.tool is not None
        refusal = constraints.chain_of(unit.connection, row.session_id).sure_refusal(row.tool, wanted.args)
        if refusal is not None:
            raise Forbidden(refusal, tool=row.tool)
        spec["args"] = dict(wanted.args)
    if not isinstance(wanted.condition, Unset):
        if row.kind is not ScheduleKind.MONITOR:
            raise InvalidInput("Only a monitor has a condition.", field="condition")
        spec["condition"] = dict(wanted.condition)
    return values if spec == row.spec else {**values, "spec": spec}


def _when(unit: Unit, row: Schedule, wanted: Edit) -> dict[str, Any]:
    when = wanted.when
    if isinstance(when, Unset):
        return {}
    if row.kind is ScheduleKind.MONITOR and when.cron is None:
        raise InvalidInput("A monitor looks again and again: give it a cron expression.", field="cron")
    first = when.first(unit.now)
    values: dict[str, Any] = {"cron": when.cron, "at": None if when.cron is not None else first, "zone": when.zone}
    return {**values, "due_at": first} if row.state is ScheduleState.ACTIVE else values


def pause(unit: Unit, schedule_id: ScheduleId, *, owner_id: str) -> Schedule:
    """Nothing of it fires until it is resumed. Once more changes nothing."""
    row = found(unit, schedule_id, owner_id=owner_id)
    if row.state is ScheduleState.ENDED:
        raise Conflict("The schedule has ended: there is nothing to pause.", state=row.state)
    return row if row.state is ScheduleState.PAUSED else paused(unit, row, "asked")


def paused(unit: Unit, row: Schedule, reason: str) -> Schedule:
    values = {"state": ScheduleState.PAUSED.value, "reason": reason, "due_at": None}
    return _changed(unit, row, EventType.SCHEDULE_PAUSED, values)


def pause_all(unit: Unit, session_id: SessionId) -> None:
    """The session was archived: its schedules are paused, and say why."""
    for row in schedules.of_session(unit.connection, session_id):
        if row.state is ScheduleState.ACTIVE:
            paused(unit, row, ARCHIVED)


def resume(unit: Unit, schedule_id: ScheduleId, *, owner_id: str) -> Schedule:
    """From the next time on. The one time of a schedule that passed meanwhile is missed: its policy decides."""
    row = found(unit, schedule_id, owner_id=owner_id)
    if row.state is ScheduleState.ENDED:
        raise Conflict("The schedule has ended: make a new one.", state=row.state)
    if unit.lock(row.session_id).is_archived:
        raise Conflict("The session is archived: take it out of the archive first.")
    if row.state is ScheduleState.ACTIVE:
        return row
    due_at = row.when.first(unit.now) if row.cron is not None else row.at
    values = {"state": ScheduleState.ACTIVE.value, "reason": None, "due_at": due_at}
    return _changed(unit, row, EventType.SCHEDULE_CHANGED, values)


def delete(
    unit: Unit, schedule_id: ScheduleId, *, owner_id: str | None = None, session_id: SessionId | None = None
) -> None:
    """It and its history are gone; what it has already made goes on. A monitor's task is cancelled."""
    row = found(unit, schedule_id, owner_id=owner_id, session_id=session_id)
    fires.delete_of(unit, row.id)
    schedules.delete(unit, row.id)
    if row.task_id is not None:
        task = tasks.get(unit.connection, row.task_id)
        if task is not None and not task.is_over:
            task_moves.request_cancel(unit, row.task_id, owner_id=row.owner_id)
    unit.append(row.session_id, [Draft(EventType.SCHEDULE_DELETED, {"schedule_id": row.id})])
    unit.signal(SCHEDULES)


def _changed(unit: Unit, row: Schedule, type_: EventType, values: Mapping[str, Any]) -> Schedule:
    if not schedules.change(unit, row, **values):
        raise Conflict("The schedule was changed in this moment: look at it again.", id=row.id)
    again = schedules.get(unit.connection, row.id)
    assert again is not None
    unit.append(row.session_id, [Draft(type_, {"schedule": again.snapshot})])
    unit.signal(SCHEDULES)
    return again


def _no_such(schedule_id: str) -> NotFound:
    return NotFound("There is no such schedule.", id=schedule_id)
