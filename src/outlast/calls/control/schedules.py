"""`schedule`, `list_schedules`, `cancel_schedule`: the model's own schedules of its session."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import Field
from pydantic_ai import Tool
from pydantic_ai.exceptions import ToolFailed

from outlast.calls.call import RunningCall
from outlast.calls.control.parts import ControlParts, this_call
from outlast.errors import OutlastError
from outlast.ids import ScheduleId
from outlast.store.database import retry_while_unavailable
from outlast.store.repositories import schedules
from outlast.store.repositories.schedules import NewSchedule, Schedule, ScheduleKind
from outlast.timing import when as whens
from outlast.timing.zones import shown
from outlast.tool_hints import hints
from outlast.transitions.schedules import changes, creation
from outlast.values import condition as conditions

When = Annotated[str, Field(description="Cron of 5 fields, an RFC 3339 time, or a delay such as 'in 20 minutes'.")]
Zone = Annotated[str, Field(description="IANA zone of cron.")]


def schedule(parts: ControlParts) -> Tool[Any]:
    """Run again after a crash it finds the schedule that it has made: there is one for each call."""

    async def schedule(text: str, when: When, zone: Zone = "UTC", title: str | None = None) -> dict[str, Any]:
        """Say a text to yourself in this session at a time, once or again and again."""
        call = this_call()
        new = NewSchedule(
            ScheduleKind.MESSAGE,
            _parsed(when, zone),
            title=call.secrets.mask(title),
            text=call.secrets.mask(text),
            made_by=made_by(call),
            key=key_of(call),
        )
        return told(await made(parts, call, new))

    return Tool(schedule, metadata=hints(idempotent=True, budget=None))


def list_schedules(parts: ControlParts) -> Tool[Any]:
    async def list_schedules() -> dict[str, Any]:
        """The schedules of this session, with their next times."""
        call = this_call()
        found = await parts.read(partial(schedules.of_session, session_id=call.session_id))
        return {"schedules": [told(each) for each in found]}

    return Tool(list_schedules, metadata=hints(read_only=True, budget=None))


def cancel_schedule(parts: ControlParts) -> Tool[Any]:
    async def cancel_schedule(schedule_id: str) -> dict[str, Any]:
        """Delete a schedule of this session. What it has already begun goes on."""
        call = this_call()
        delete = partial(changes.delete, schedule_id=ScheduleId(schedule_id), session_id=call.session_id)
        try:
            await retry_while_unavailable(partial(parts.database.transaction, delete, name="schedule.delete"))
        except OutlastError as exc:
            raise ToolFailed(exc.message) from exc
        return {"deleted": schedule_id}

    return Tool(cancel_schedule, metadata=hints(budget=None))


def spawning_schedule(
    call: RunningCall,
    tool: str,
    spec: Mapping[str, Any],
    *,
    when: str,
    zone: str,
    title: str | None,
    condition: Mapping[str, Any] | None,
) -> NewSchedule:
    """For `spawn_background`: the tool at its times, or as a monitor."""
    kind = ScheduleKind.TOOL if condition is None else ScheduleKind.MONITOR
    try:
        judged = {} if condition is None else {"condition": conditions.check(condition)}
    except OutlastError as exc:
        raise ToolFailed(exc.message) from exc
    return NewSchedule(
        kind,
        _parsed(when, zone),
        title=call.secrets.mask(title),
        tool=tool,
        spec={**spec, **judged},
        made_by=made_by(call),
        key=key_of(call),
    )


async def made(parts: ControlParts, call: RunningCall, new: NewSchedule) -> Schedule:
    accept = partial(creation.create, session_id=call.session_id, new=new, owner_id=call.owner_id)
    try:
        creation.check(new, max_text=parts.database.limits.max_text)
        return await retry_while_unavailable(partial(parts.database.transaction, accept, name="schedule.create"))
    except OutlastError as exc:
        if exc.code == "store_unavailable":
            raise
        raise ToolFailed(exc.message) from exc


def made_by(call: RunningCall) -> dict[str, Any]:
    return {"kind": "model", "turn_id": call.turn_id}


def key_of(call: RunningCall) -> str:
    return f"call:{call.key}"


def told(row: Schedule) -> dict[str, Any]:
    what = {"text": row.text} if row.tool is None else {"tool": row.tool, "args": row.spec.get("args")}
    return {
        "schedule_id": row.id,
        **({} if row.title is None else {"title": row.title}),
        **what,
        **({} if row.condition is None else {"condition": conditions.in_words(row.condition)}),
        "when": "once" if row.cron is None else f"{row.cron} {row.zone}",
        "next": None if row.due_at is None else shown(row.due_at, row.zone),
        "state": row.state.value if row.reason is None else f"{row.state.value}: {row.reason}",
        "fired": row.fired,
        "made_by": row.made_by.get("kind"),
    }


def _parsed(when: str, zone: str) -> whens.When:
    try:
        return whens.parse_words(when, zone)
    except OutlastError as exc:
        raise ToolFailed(exc.message) from exc
