"""Monitors at the end of a task: what a check came to, and the end of a monitor's own task."""

from collections.abc import Mapping
from typing import Any

from outlast.events.event import Draft
from outlast.events.signals import SCHEDULES
from outlast.events.types import EventType
from outlast.ids import ScheduleId
from outlast.store.repositories import inputs, schedules, tasks
from outlast.store.repositories.inputs import InputKind, InputState, Mode
from outlast.store.repositories.schedules import Schedule, ScheduleState
from outlast.store.repositories.stored_task import Task, TaskState
from outlast.store.unit import Unit
from outlast.timing.zones import shown
from outlast.transitions.tasks import wake
from outlast.transitions.turns import inbox
from outlast.values import condition

MONITOR = "monitor"
CHECK_OF = "check_of"
"""In the spec of a task: the schedule of the monitor that it is a check of."""
_FAILS = "fails"
_SHOWN = 300


def task_ended(unit: Unit, task: Task) -> None:
    """In the transaction of its end. What waits for the end of what a schedule began may go on."""
    if (task.links or {}).get("schedule"):
        unit.signal(SCHEDULES)
    if task.kind == MONITOR:
        _monitor_ended(unit, task)
    elif task.spec.get(CHECK_OF) is not None:
        _checked(unit, task, ScheduleId(task.spec[CHECK_OF]))


def _monitor_ended(unit: Unit, task: Task) -> None:
    """Whoever cancels the task ends the monitor."""
    row = schedules.get(unit.connection, ScheduleId((task.links or {}).get("schedule", "")))
    if row is None or row.state is ScheduleState.ENDED:
        return
    values = {"state": ScheduleState.ENDED.value, "reason": task.state.value, "due_at": None}
    if schedules.change(unit, row, **values):
        again = schedules.get(unit.connection, row.id)
        assert again is not None
        unit.append(row.session_id, [Draft(EventType.SCHEDULE_CHANGED, {"schedule": again.snapshot})])
        unit.signal(SCHEDULES)


def _checked(unit: Unit, task: Task, schedule_id: ScheduleId) -> None:
    """Wake the session when the condition is met and was not at the last check; a monitor that fails says so once."""
    row = schedules.get(unit.connection, schedule_id)
    if row is None or row.state is ScheduleState.ENDED:
        return
    last: Mapping[str, Any] = row.last_result or {}
    judged = row.condition or {"kind": "changed", "path": None}
    if task.state is TaskState.SUCCEEDED:
        has_last = "value" in last
        is_met = condition.is_met(judged, task.result, last.get("value"), has_last=has_last)
        was_met = bool(last.get("is_met")) and judged["kind"] != "changed"
        if is_met and not was_met:
            _wake(unit, row, task, f"{condition.in_words(judged)}.\n{wake.result_line(task)}")
        now: dict[str, Any] = {"value": task.result, "is_met": is_met}
    else:
        error = task.error or {"kind": task.state.value, "message": f"The check was {task.state.value}."}
        if _FAILS not in last:
            _wake(unit, row, task, f"its check failed ({error['kind']}): {error['message']}")
        now = {**last, _FAILS: error}
    schedules.set_values(unit, row.id, last_result={"value": now})
    _show(unit, row, task, now)


def _wake(unit: Unit, row: Schedule, task: Task, news: str) -> None:
    """One input waits at most: what is newer takes the place of what nobody has seen yet."""
    text = f"Monitor {row.id} ({row.name}), checked at {shown(unit.now, row.zone)}: {news}"
    for each in inputs.waiting_for(unit, row.session_id):
        if each.kind is InputKind.SCHEDULE and each.body.get("schedule", {}).get("id") == row.id:
            inputs.change_text(unit, each.id, text, body=each.body)
            unit.append(row.session_id, [Draft(EventType.INPUT_EDITED, {"input_id": each.id, "text": text[:2_000]})])
            return
    inbox.notify(
        unit,
        row.session_id,
        InputKind.SCHEDULE,
        text,
        body={"schedule": {"id": row.id, "monitor": True}},
        task_id=task.id,
        mode=Mode.QUEUE,
        state=InputState.WAITING,
    )


def _show(unit: Unit, row: Schedule, check: Task, now: Mapping[str, Any]) -> None:
    """On the monitor's own task: how often it looked, when it looks next, what it saw last."""
    task = None if row.task_id is None else tasks.get(unit.connection, row.task_id)
    if task is None or task.is_over:
        return
    came_to = f"failed: {now[_FAILS]['message']}" if _FAILS in now else wake.result_line(check)
    next_at = "none" if row.due_at is None else shown(row.due_at, row.zone)
    detail = f"{row.fired} checks, last {shown(unit.now, row.zone)}, next {next_at}. Last {came_to[:_SHOWN]}"
    tasks.set_values(unit, task.id, detail=detail)
    again = tasks.get(unit.connection, task.id)
    assert again is not None
    unit.append(row.session_id, [Draft(EventType.TASK_CHANGED, {"task": again.snapshot}, again.turn_id, again.id)])
