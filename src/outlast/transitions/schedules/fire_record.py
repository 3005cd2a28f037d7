"""What becomes of one time of a schedule: what it makes, the row of its history, and its event."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from outlast.clock import in_words
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.store.repositories import fires, schedules
from outlast.store.repositories.fires import Fire, FireOutcome, How
from outlast.store.repositories.inputs import InputKind, Mode
from outlast.store.repositories.schedules import Schedule, ScheduleKind
from outlast.store.repositories.stored_task import WakePolicy
from outlast.store.unit import Unit
from outlast.timing.zones import shown, zone_of
from outlast.transitions.tasks import spawning
from outlast.transitions.tasks.spawning import Spawn
from outlast.transitions.turns import inbox

_LATE = timedelta(seconds=30)


class FireRecord:
    """In one transaction, under the session's lock. `close` writes the counters."""

    def __init__(self, unit: Unit, schedule: Schedule, next_at: datetime | None) -> None:
        self._unit = unit
        self._schedule = schedule
        self._next_at = next_at
        self._number = schedule.last_fire
        self._fired = 0

    def fire(self, due_at: datetime, *, how: How, missed: int = 0) -> Fire:
        """Make its input or task. Raises `Forbidden` or `TooManyTasks` before anything is written."""
        fire = self._made(self._new(due_at, FireOutcome.FIRED, how=how), missed)
        self._keep(fire)
        return fire

    def fire_queued(self, queued: Fire) -> None:
        late = (self._unit.now - queued.due_at).total_seconds()
        fire = replace(queued, outcome=FireOutcome.FIRED, at=self._unit.now, late_seconds=late, reason=None)
        fire = self._made(fire, 0)
        fires.decide(self._unit, fire)
        self._fired += 1
        self._tell(fire)

    def give_up(self, queued: Fire, reason: str, detail: str) -> None:
        fire = replace(queued, outcome=FireOutcome.FAILED, at=self._unit.now, reason=reason, detail=detail)
        fires.decide(self._unit, fire)
        self._tell(fire)

    def queued(self, due_at: datetime) -> None:
        self._keep(self._new(due_at, FireOutcome.QUEUED, reason="overlap"))

    def skipped(self, due_at: datetime, reason: str, detail: str) -> None:
        self._keep(self._new(due_at, FireOutcome.SKIPPED, reason=reason, detail=detail))

    def failed(self, due_at: datetime, reason: str, detail: str) -> None:
        self._keep(self._new(due_at, FireOutcome.FAILED, reason=reason, detail=detail))

    def missed(self, first: datetime, count: int, *, is_more: bool) -> None:
        """Times that passed while nothing could fire, and that are not made up for."""
        words = (
            f"{'At least ' if is_more else ''}{count} times were missed, from {shown(first, self._schedule.zone)} on."
        )
        fire = self._new(first, FireOutcome.SKIPPED, reason="missed", detail=words)
        self._keep(replace(fire, count=max(1, count)))

    def close(self, *, is_ended: bool) -> None:
        values: dict[str, Any] = {"last_fire": self._number, "fired": self._schedule.fired + self._fired}
        if self._fired:
            values["last_fired_at"] = self._unit.now
        schedules.set_values(self._unit, self._schedule.id, **values)
        if is_ended:
            again = schedules.get(self._unit.connection, self._schedule.id)
            assert again is not None
            told = {"schedule": again.snapshot}
            self._unit.append(again.session_id, [Draft(EventType.SCHEDULE_CHANGED, told)])

    def _new(
        self,
        due_at: datetime,
        outcome: FireOutcome,
        *,
        how: How = How.DUE,
        reason: str | None = None,
        detail: str | None = None,
    ) -> Fire:
        late = max(0.0, (self._unit.now - due_at).total_seconds())
        return Fire(
            self._schedule.id,
            self._number + 1,
            due_at,
            self._unit.now,
            how,
            outcome,
            late,
            reason=reason,
            detail=detail,
        )

    def _keep(self, fire: Fire) -> None:
        self._number = fire.number
        self._fired += fire.outcome is FireOutcome.FIRED
        fires.insert(self._unit, self._schedule.session_id, fire)
        self._tell(fire)

    def _made(self, fire: Fire, missed: int) -> Fire:
        if self._schedule.kind is ScheduleKind.MESSAGE:
            kept = inbox.notify(
                self._unit,
                self._schedule.session_id,
                InputKind.SCHEDULE,
                self._schedule.text or "",
                body={"schedule": self._body(fire, missed)},
                mode=Mode.QUEUE,
            )
            return replace(fire, input_id=kept.id)
        wanted = self._wanted(fire)
        task = spawning.spawn(self._unit, self._schedule.session_id, wanted, owner_id=self._schedule.owner_id)
        return replace(fire, task_id=task.id)

    def _body(self, fire: Fire, missed: int) -> dict[str, Any]:
        return {
            "id": self._schedule.id,
            "fire": fire.number,
            "due_at": fire.due_at.astimezone(zone_of(self._schedule.zone)).isoformat(),
            "late_by": fire.late_seconds if fire.late_seconds > _LATE.total_seconds() else 0.0,
            "notice": self._notice(fire, missed),
        }

    def _notice(self, fire: Fire, missed: int) -> str:
        schedule, made_by = self._schedule, self._schedule.made_by.get("kind")
        title = f" ({schedule.title})" if schedule.title else ""
        due = f"was due at {shown(fire.due_at, schedule.zone)}"
        if fire.how is How.TRIGGERED:
            due = "was triggered by hand"
        elif fire.late_seconds > _LATE.total_seconds():
            due += f" and is late by {in_words(timedelta(seconds=fire.late_seconds))}"
        more = f" {missed} earlier times were missed." if missed else ""
        who = "you made it" if made_by == "model" else "the user made it"
        return f"Schedule {schedule.id}{title} {due}; {who}.{more} It says:"

    def _wanted(self, fire: Fire) -> Spawn:
        schedule, spec = self._schedule, self._schedule.spec
        is_monitor = schedule.kind is ScheduleKind.MONITOR
        return Spawn(
            schedule.tool or "",
            spec.get("args", {}),
            title=schedule.title,
            group=None if is_monitor else spec.get("group"),
            wake=WakePolicy.SILENT if is_monitor else WakePolicy(spec.get("wake", WakePolicy.ON_TERMINAL)),
            key=f"fire:{schedule.id}:{fire.number}",
            may_run_again=bool(spec.get("may_run_again")),
            deadline=_seconds(spec, "deadline_seconds") or self._unit.limits.call_deadline,
            progress_deadline=_seconds(spec, "progress_seconds"),
            max_attempts=spec.get("max_attempts"),
            narration=spec.get("narration") or {},
            schedule_id=schedule.id,
            is_check=is_monitor,
        )

    def _tell(self, fire: Fire) -> None:
        is_skip = fire.outcome in (FireOutcome.SKIPPED, FireOutcome.FAILED)
        if fire.outcome is FireOutcome.QUEUED:
            return
        zone = zone_of(self._schedule.zone)
        data: dict[str, Any] = {
            "schedule_id": self._schedule.id,
            "title": self._schedule.name,
            "number": fire.number,
            "due_at": fire.due_at.astimezone(zone).isoformat(),
            "how": fire.how.value,
            "outcome": fire.outcome.value,
            "late_seconds": fire.late_seconds,
            "reason": fire.reason,
            "detail": fire.detail,
            "count": fire.count,
            "input_id": fire.input_id,
            "task_id": fire.task_id,
            "next_at": None if self._next_at is None else self._next_at.astimezone(zone).isoformat(),
        }
        type_ = EventType.SCHEDULE_SKIPPED if is_skip else EventType.SCHEDULE_FIRED
        self._unit.append(self._schedule.session_id, [Draft(type_, data, task_id=fire.task_id)])


def _seconds(spec: Mapping[str, Any], name: str) -> timedelta | None:
    found = spec.get(name)
    return None if found is None else timedelta(seconds=found)
