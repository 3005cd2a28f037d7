"""Your schedules: what is to happen in your sessions, and when."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

from outlast.client.connection import Connection, path
from outlast.paging import Page
from outlast.tool_hints import UNSET, Unset
from outlast.wire.forms import ListOf
from outlast.wire.schedule import Fire, MissedPolicy, OverlapPolicy, Preview, Schedule, ScheduleStateName


class Schedules:
    """Made, listed, looked at, edited, paused, resumed, triggered, deleted, with the history of their fires."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def create(
        self,
        session_id: str,
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
        """Say a text to a session, or run a tool of its agent; with a `condition` the tool is a monitor."""
        body: dict[str, Any] = {
            **{"session_id": session_id, "text": text, "tool": tool, "args": dict(args or {})},
            **{"condition": None if condition is None else dict(condition), **_when(cron, at, delay), "zone": zone},
            **{"title": title, "missed": missed, "overlap": overlap, "wake": wake, "group": group},
        }
        answer = await self._connection.ask("POST", "/v1/schedules", body=body, key=idempotency_key)
        return Schedule.model_validate(answer)

    async def list(
        self,
        *,
        session_id: str | None = None,
        state: ScheduleStateName | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Page[Schedule]:
        """Newest first, a page at a time; `before` is the `next` of the page before."""
        answer = await self._connection.get(
            "/v1/schedules", session=session_id, state=state, cursor=before, limit=limit
        )
        found = ListOf[Schedule].model_validate(answer)
        return Page(found.items, found.next)

    async def get(self, schedule_id: str) -> Schedule:
        return Schedule.model_validate(await self._connection.get(path("schedules", schedule_id)))

    async def edit(
        self,
        schedule_id: str,
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
        when = {**_when(cron, at, delay), "zone": zone}
        given = {"title": title, "text": text, "args": args, "condition": condition}
        given |= {"missed": missed, "overlap": overlap}
        body = {name: value for name, value in when.items() if value is not None}
        body |= {name: value for name, value in given.items() if not isinstance(value, Unset)}
        answer = await self._connection.ask("PATCH", path("schedules", schedule_id), body=body, is_repeatable=True)
        return Schedule.model_validate(answer)

    async def pause(self, schedule_id: str) -> Schedule:
        """Nothing of it fires until it is resumed; what it has made goes on."""
        return await self._move(schedule_id, "pause", is_repeatable=True)

    async def resume(self, schedule_id: str) -> Schedule:
        return await self._move(schedule_id, "resume", is_repeatable=True)

    async def trigger(self, schedule_id: str) -> Schedule:
        """Fire once now, whatever its times are. They stay as they are."""
        return await self._move(schedule_id, "trigger", is_repeatable=False)

    async def delete(self, schedule_id: str) -> None:
        """It and its history are gone; what it has made goes on."""
        await self._connection.ask("DELETE", path("schedules", schedule_id))

    async def fires(self, schedule_id: str, *, before: int | str | None = None, limit: int = 50) -> Page[Fire]:
        """Its history, newest first: what became of each time."""
        where = path("schedules", schedule_id, "fires")
        found = ListOf[Fire].model_validate(await self._connection.get(where, cursor=before, limit=limit))
        return Page(found.items, found.next)

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
        body = {**_when(cron, at, delay), "zone": zone, "count": count}
        answer = await self._connection.ask("POST", "/v1/schedules/preview", body=body, is_repeatable=True)
        return Preview.model_validate(answer)

    async def _move(self, schedule_id: str, verb: str, *, is_repeatable: bool) -> Schedule:
        answer = await self._connection.ask("POST", path("schedules", schedule_id, verb), is_repeatable=is_repeatable)
        return Schedule.model_validate(answer)


def _when(cron: str | None, at: datetime | str | None, delay: timedelta | str | None) -> dict[str, Any]:
    delay = f"{int(delay.total_seconds())} seconds" if isinstance(delay, timedelta) else delay
    return {"cron": cron, "at": None if at is None else _text(at), "delay": delay}


def _text(at: datetime | str) -> str:
    return at.isoformat() if isinstance(at, datetime) else at
