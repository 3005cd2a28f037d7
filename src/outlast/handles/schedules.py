"""Schedules as a program holds them: make, list, look, edit, pause, resume, trigger, delete, and their history."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal, TypeVar

import sqlalchemy as sa

from outlast import paging
from outlast.calls.narration import Narration
from outlast.clock import Clock
from outlast.errors import InvalidInput, NotFound
from outlast.handles import reading
from outlast.handles.one_session.spawn import checked_args, policy_of, tool_of
from outlast.handles.services.services import Services
from outlast.ids import OwnerId, ScheduleId, SessionId
from outlast.paging import Page
from outlast.store.repositories import fires, schedules, sessions
from outlast.store.repositories.fires import Fire as StoredFire
from outlast.store.repositories.schedules import Missed, NewSchedule, Overlap, ScheduleKind, ScheduleState
from outlast.store.repositories.schedules import Schedule as StoredSchedule
from outlast.timing import when as whens
from outlast.timing.zones import kept_zone, zone_of
from outlast.tool_hints import UNSET, Unset, Wake, hints_of
from outlast.transitions.schedules import changes, creation, firing
from outlast.transitions.schedules.changes import Edit
from outlast.transitions.sessions.profile import check_name
from outlast.values import condition as conditions
from outlast.wire.schedule import Fire, MissedPolicy, OverlapPolicy, Preview, Schedule, ScheduleStateName

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class What:
    """What a schedule does: it says a text, or runs a tool, as a monitor if there is a condition."""

    text: str | None = None
    tool: str | None = None
    args: Mapping[str, Any] | None = None
    condition: Mapping[str, Any] | None = None
    wake: Wake | None = None
    group: str | None = None


async def make(
    services: Services,
    session_id: SessionId,
    what: What,
    when: whens.When,
    *,
    owner_id: OwnerId,
    title: str | None = None,
    missed: MissedPolicy = "run_once",
    overlap: OverlapPolicy = "skip",
    by: str | None = None,
    key: str | None = None,
) -> Schedule:
    """Accepted means kept. The tool and its arguments are judged now; permissions and gates at each fire too."""
    look = partial(reading.there, session_id=session_id, owner_id=owner_id)
    agent = (await services.database.read(look, is_single=True)).agent
    if key is not None:
        check_name(key, "idempotency key")
    kind, spec = await _what(services, agent, what)
    new = NewSchedule(
        kind,
        when,
        title=services.shown.value(title),
        text=services.shown.value(what.text),
        tool=what.tool,
        spec=spec,
        missed=_one_of(Missed, missed, "missed"),
        overlap=_one_of(Overlap, overlap, "overlap"),
        made_by={"kind": "person", "by": services.shown.value(by)},
        key=None if key is None else f"key:{key}",
    )
    creation.check(new, max_text=services.limits.max_text)
    accept = partial(creation.create, session_id=session_id, new=new, owner_id=owner_id)
    return shown(services, await services.database.transaction(accept, name="schedule.create"))


async def _what(services: Services, agent: str, what: What) -> tuple[ScheduleKind, dict[str, Any]]:
    if (what.text is None) == (what.tool is None):
        raise InvalidInput("Give exactly one of text and tool: what it says, or what it runs.")
    if what.tool is None:
        if what.args or what.condition is not None:
            raise InvalidInput("args and condition are about a tool: name it as `tool`.")
        return ScheduleKind.MESSAGE, {}
    definition = await tool_of(services, agent, what.tool)
    said = hints_of(definition.metadata)
    args = checked_args(services, definition, what.args or {})
    spec: dict[str, Any] = {
        "args": args,
        "wake": policy_of(what.wake, said).value,
        "group": services.shown.value(what.group) or said.group,
        "may_run_again": said.may_run_again,
        "deadline_seconds": None if said.deadline is None else said.deadline.total_seconds(),
        "progress_seconds": None if said.progress_deadline is None else said.progress_deadline.total_seconds(),
        "max_attempts": said.max_attempts,
        "narration": dict(Narration(what.tool, said, args, services.shown.value).phases),
    }
    if what.condition is None:
        return ScheduleKind.TOOL, spec
    return ScheduleKind.MONITOR, {**spec, "condition": conditions.check(what.condition)}


def _one_of(values: type[T], given: Any, name: str) -> T:
    try:
        return values(given)  # pyright: ignore[reportCallIssue]
    except ValueError as exc:
        known = ", ".join(each.value for each in values)  # pyright: ignore
        raise InvalidInput(f"{name}={given!r} is not known: use one of {known}.", field=name) from exc


def shown(services: Services, row: StoredSchedule) -> Schedule:
    """The view of a schedule, its times in its zone."""
    value, zone = services.shown.value, kept_zone(row.zone)
    last: Mapping[str, Any] = row.last_result or {}

    def local(instant: datetime | None) -> datetime | None:
        return None if instant is None else instant.astimezone(zone)

    return Schedule.model_validate(
        {
            **{name: getattr(row, name) for name in ("id", "session_id", "tool", "cron", "zone", "reason", "fired")},
            **{name: getattr(row, name) for name in ("task_id", "created_at", "updated_at")},
            **{name: getattr(row, name).value for name in ("kind", "missed", "overlap", "state")},
            **{name: value(getattr(row, name)) for name in ("title", "text", "made_by")},
            "args": value(row.spec.get("args", {})),
            "condition": value(row.condition),
            "at": local(row.at),
            "next_at": row.next_at,
            "last_fired_at": local(row.last_fired_at),
            "last_result": value(last.get("value")),
            "last_error": value(last.get("fails")),
        }
    )


@dataclass(frozen=True, slots=True)
class Schedules:
    """The schedules of one owner. Another owner's id and an unknown id get the same answer."""

    services: Services
    owner_id: OwnerId
    clock: Clock

    async def create(
        self,
        session_id: SessionId | str,
        text: str | None = None,
        *,
        tool: str | None = None,
        args: Mapping[str, Any] | None = None,
        condition: Mapping[str, Any] | None = None,
        cron: str | None = None,
        at: datetime | str | None = None,
        delay: timedelta | str | None = None,
        zone: str = "UTC",
        title: str | None = None,
        missed: MissedPolicy = "run_once",
        overlap: OverlapPolicy = "skip",
        wake: Literal["on_terminal", "silent"] | None = None,
        group: str | None = None,
        idempotency_key: str | None = None,
    ) -> Schedule:
        """The same as `schedule` of a session, for whoever has only its id."""
        return await make(
            self.services,
            SessionId(session_id),
            What(text, tool, args, condition, wake, group),
            whens.parse(cron=cron, at=at, delay=delay, zone=zone),
            owner_id=self.owner_id,
            title=title,
            missed=missed,
            overlap=overlap,
            key=idempotency_key,
        )

    async def list(
        self,
        *,
        session_id: SessionId | str | None = None,
        state: ScheduleStateName | None = None,
        before: ScheduleId | str | None = None,
        limit: int = 50,
    ) -> Page[Schedule]:
        """Newest first, a page at a time; `before` is the `next` of the page before."""
        most = paging.clamp(limit)
        look = partial(
            schedules.page,
            owner_id=self.owner_id,
            session_id=None if session_id is None else SessionId(session_id),
            state=None if state is None else _one_of(ScheduleState, state, "state"),
            before=before,
            limit=most + 1,
        )
        found = await self.services.database.read(look, is_single=True)
        views = [shown(self.services, each) for each in found[:most]]
        return Page(views, views[-1].id if len(found) > most else None)

    async def get(self, schedule_id: ScheduleId | str) -> Schedule:
        return shown(self.services, await self.services.database.read(self._own(schedule_id)))

    async def edit(
        self,
        schedule_id: ScheduleId | str,
        *,
        cron: str | None = None,
        at: datetime | str | None = None,
        delay: timedelta | str | None = None,
        zone: str | None = None,
        title: str | Unset | None = UNSET,
        text: str | Unset = UNSET,
        args: Mapping[str, Any] | Unset = UNSET,
        condition: Mapping[str, Any] | Unset = UNSET,
        missed: MissedPolicy | Unset = UNSET,
        overlap: OverlapPolicy | Unset = UNSET,
    ) -> Schedule:
        """Set what is given, all or nothing. A new time counts from now on."""
        row = await self.services.database.read(self._own(schedule_id))
        when: whens.When | Unset = UNSET
        if (cron, at, delay, zone) != (None, None, None, None):
            is_only_zone = (cron, at, delay) == (None, None, None)
            cron = row.cron if is_only_zone else cron
            at = row.at if is_only_zone and row.cron is None else at
            when = whens.parse(cron=cron, at=at, delay=delay, zone=zone or row.zone)
        if not isinstance(args, Unset):
            args = await self._args(row, args)
        value = self.services.shown.value
        wanted = Edit(
            when,
            title if isinstance(title, Unset) else value(title),
            text if isinstance(text, Unset) else value(text),
            args,
            condition if isinstance(condition, Unset) else conditions.check(condition),
            missed if isinstance(missed, Unset) else _one_of(Missed, missed, "missed"),
            overlap if isinstance(overlap, Unset) else _one_of(Overlap, overlap, "overlap"),
        )
        return await self._change("schedule.edit", partial(changes.edit, wanted=wanted), schedule_id)

    async def _args(self, row: StoredSchedule, args: Mapping[str, Any]) -> Mapping[str, Any]:
        if row.tool is None:
            raise InvalidInput("The schedule says a text: it has no arguments.", field="args")
        find = partial(sessions.agent_of, session_id=row.session_id)
        agent = await self.services.database.read(find, is_single=True)
        return checked_args(self.services, await tool_of(self.services, agent, row.tool), args)

    async def pause(self, schedule_id: ScheduleId | str) -> Schedule:
        """Nothing of it fires until it is resumed; what it has made goes on."""
        return await self._change("schedule.pause", changes.pause, schedule_id)

    async def resume(self, schedule_id: ScheduleId | str) -> Schedule:
        return await self._change("schedule.resume", changes.resume, schedule_id)

    async def trigger(self, schedule_id: ScheduleId | str) -> Schedule:
        """Fire once now, whatever its times are. They stay as they are."""
        return await self._change("schedule.trigger", firing.trigger, schedule_id)

    async def delete(self, schedule_id: ScheduleId | str) -> None:
        """It and its history are gone; what it has made goes on, and a monitor's task is cancelled."""
        id_ = ScheduleId(schedule_id)
        work = partial(changes.delete, schedule_id=id_, owner_id=self.owner_id)
        await self.services.database.transaction(work, name="schedule.delete")

    async def fires(
        self, schedule_id: ScheduleId | str, *, before: int | str | None = None, limit: int = 50
    ) -> Page[Fire]:
        """Its history, newest first: what became of each time."""
        most, own = paging.clamp(limit), self._own(schedule_id)
        begin = None if before is None else _number(before)

        def look(connection: sa.Connection) -> tuple[StoredSchedule, Sequence[StoredFire]]:
            row = own(connection)
            return row, fires.page(connection, row.id, before=begin, limit=most + 1)

        row, found = await self.services.database.read(look)
        views = [self._fire(row, each) for each in found[:most]]
        return Page(views, str(views[-1].number) if len(found) > most else None)

    def _fire(self, row: StoredSchedule, fire: StoredFire) -> Fire:
        zone, view = kept_zone(row.zone), Fire.of(fire)
        times = {"due_at": fire.due_at.astimezone(zone), "at": fire.at.astimezone(zone)}
        ran_at = None if fire.ran_at is None else fire.ran_at.astimezone(zone)
        return view.model_copy(update={**times, "ran_at": ran_at, "detail": self.services.shown.value(fire.detail)})

    async def preview(
        self,
        *,
        cron: str | None = None,
        at: datetime | str | None = None,
        delay: timedelta | str | None = None,
        zone: str = "UTC",
        count: int = 5,
    ) -> Preview:
        """The next times of what was not made yet."""
        when = whens.parse(cron=cron, at=at, delay=delay, zone=zone)
        times = when.coming(self.clock.now(), count)
        return Preview(
            zone=zone,
            times=[each.astimezone(zone_of(zone)) for each in times],
            utc=[each.astimezone(UTC) for each in times],
        )

    async def _change(self, name: str, change: Callable[..., StoredSchedule], schedule_id: str) -> Schedule:
        work = partial(change, schedule_id=ScheduleId(schedule_id), owner_id=self.owner_id)
        return shown(self.services, await self.services.database.transaction(work, name=name))

    def _own(self, schedule_id: str) -> Callable[[sa.Connection], StoredSchedule]:
        def look(connection: sa.Connection) -> StoredSchedule:
            row = schedules.get(connection, ScheduleId(schedule_id))
            is_there = row is not None and sessions.get(connection, row.session_id, self.owner_id) is not None
            if row is None or row.owner_id != self.owner_id or not is_there:
                raise NotFound("There is no such schedule.", id=schedule_id)
            return row

        return look


def _number(given: int | str) -> int:
    try:
        return min(max(0, int(given)), 2**31 - 1)
    except ValueError as exc:
        raise InvalidInput(f"{given!r} is not a cursor: use the `next` of the last page, or none.") from exc
