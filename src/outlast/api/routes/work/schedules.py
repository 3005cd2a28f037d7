"""Schedules: made, listed, looked at, edited, paused, resumed, triggered, deleted, and the history of their fires."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from outlast.api.admission import AdmittedRoute
from outlast.api.auth import Caller
from outlast.api.wiring import COMMON, DECIDED, FOUND, Cursor, IdempotencyKey, Limit, OwnSchedules, OwnSessions
from outlast.wire.forms import ListOf
from outlast.wire.schedule import (
    Fire,
    Preview,
    PreviewBody,
    Schedule,
    ScheduleBody,
    ScheduleEdit,
    ScheduleStateName,
)

router = APIRouter(prefix="/schedules", tags=["schedules"], responses=COMMON, route_class=AdmittedRoute)


@router.get("")
async def list_schedules(
    schedules: OwnSchedules,
    state: ScheduleStateName | None = None,
    session: Annotated[str | None, Query(max_length=100, description="Of this session only.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListOf[Schedule]:
    """Your schedules, newest first."""
    page = await schedules.list(session_id=session, state=state, before=cursor, limit=limit)
    return ListOf(items=list(page.items), next=page.next)


@router.post("", status_code=201, responses=DECIDED)
async def create_schedule(
    sessions: OwnSessions, body: ScheduleBody, caller: Caller, idempotency_key: IdempotencyKey = None
) -> Schedule:
    """Say a text to a session, or run a tool of its agent, at its times. It is kept from the answer on."""
    session = await sessions.get(body.session_id)
    return await session.schedule(
        body.text,
        tool=body.tool,
        args=body.args or None,
        condition=None if body.condition is None else body.condition.model_dump(exclude_unset=True),
        cron=body.cron,
        at=body.at,
        delay=body.delay,
        zone=body.zone,
        title=body.title,
        missed=body.missed,
        overlap=body.overlap,
        wake=body.wake,
        group=body.group,
        by=caller.label,
        idempotency_key=idempotency_key,
    )


@router.post("/preview")
async def preview_schedule(schedules: OwnSchedules, body: PreviewBody) -> Preview:
    """The next times of what was not made yet."""
    return await schedules.preview(cron=body.cron, at=body.at, delay=body.delay, zone=body.zone, count=body.count)


@router.get("/{schedule_id}", responses=FOUND)
async def get_schedule(schedules: OwnSchedules, schedule_id: str) -> Schedule:
    return await schedules.get(schedule_id)


@router.patch("/{schedule_id}", responses=DECIDED)
async def edit_schedule(schedules: OwnSchedules, schedule_id: str, body: ScheduleEdit) -> Schedule:
    """Set what is given, all or nothing; a new time counts from now on."""
    given: dict[str, Any] = body.model_dump(exclude_unset=True)
    # Only a title can be taken away; null for anything else is the same as leaving it out.
    given = {name: value for name, value in given.items() if value is not None or name == "title"}
    return await schedules.edit(schedule_id, **given)


@router.delete("/{schedule_id}", status_code=204, responses=FOUND)
async def delete_schedule(schedules: OwnSchedules, schedule_id: str) -> None:
    """It and its history are gone; what it has made goes on, and a monitor's task is cancelled."""
    await schedules.delete(schedule_id)


@router.post("/{schedule_id}/pause", responses=DECIDED)
async def pause_schedule(schedules: OwnSchedules, schedule_id: str) -> Schedule:
    """Nothing of it fires until it is resumed; what it has made goes on."""
    return await schedules.pause(schedule_id)


@router.post("/{schedule_id}/resume", responses=DECIDED)
async def resume_schedule(schedules: OwnSchedules, schedule_id: str) -> Schedule:
    """From its next time on. If its only time passed meanwhile, its policy for missed times decides."""
    return await schedules.resume(schedule_id)


@router.post("/{schedule_id}/trigger", responses=DECIDED)
async def trigger_schedule(schedules: OwnSchedules, schedule_id: str) -> Schedule:
    """Fire once now, whatever its times are. They stay as they are."""
    return await schedules.trigger(schedule_id)


@router.get("/{schedule_id}/fires", responses=FOUND)
async def list_fires(
    schedules: OwnSchedules, schedule_id: str, limit: Limit = 50, cursor: Cursor = None
) -> ListOf[Fire]:
    """What became of each of its times, newest first."""
    page = await schedules.fires(schedule_id, before=cursor, limit=limit)
    return ListOf(items=list(page.items), next=page.next)
