"""Schedules on the wire. Times are written with the offset of the schedule's zone."""

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from outlast.ids import InputId, ScheduleId, SessionId, TaskId, TurnId
from outlast.wire.forms import SESSION_ID, Answer, Body

MissedPolicy = Literal["run_once", "skip", "run_all"]
OverlapPolicy = Literal["skip", "queue", "allow"]
ScheduleStateName = Literal["active", "paused", "ended"]

_CRON = "Five fields: minute, hour, day of the month, month, day of the week."
_AT = "One time, RFC 3339; without an offset it is a time of the zone's clock."
_DELAY = "From now, such as `in 20 minutes`."
_ZONE = "An IANA zone, such as Europe/Berlin."
_MISSED = "What becomes of times that passed while the server was down or paused."
_OVERLAP = "What becomes of a time that comes while an earlier fire is not over."


class Condition(Body):
    """What a monitor waits for in its tool's results."""

    kind: Literal["changed", "equals", "matches", "above", "below"] = "changed"
    path: str | None = Field(
        default=None, max_length=500, description="To a part of the result, such as `jobs[0].state`."
    )
    value: JsonValue = None


class WhenBody(Body):
    """Exactly one of `cron`, `at` and `delay`."""

    cron: str | None = Field(default=None, max_length=200, description=_CRON)
    at: str | None = Field(default=None, max_length=100, description=_AT)
    delay: str | None = Field(default=None, max_length=100, description=_DELAY)
    zone: str = Field(default="UTC", max_length=100, description=_ZONE)


class ScheduleBody(WhenBody):
    """A `text` for the session, or a `tool` to run; with a `condition` the tool is a monitor."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"session_id": SESSION_ID, "text": "Sum up yesterday.", "cron": "0 8 * * 1-5", "zone": "Europe/Berlin"}
            ]
        }
    )

    session_id: str = Field(max_length=100)
    text: str | None = Field(default=None, description="What it says to the session.")
    tool: str | None = Field(default=None, min_length=1, max_length=200, description="A tool of the session's agent.")
    args: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    condition: Condition | None = Field(default=None, description="Of a monitor; `{}` is: the result has changed.")
    title: str | None = Field(default=None, max_length=500)
    missed: MissedPolicy = Field(default="run_once", description=_MISSED)
    overlap: OverlapPolicy = Field(default="skip", description=_OVERLAP)
    wake: Literal["on_terminal", "silent"] | None = Field(
        default=None, description="Whether the end of its tasks wakes the session."
    )
    group: str | None = Field(default=None, max_length=200)


class ScheduleEdit(Body):
    """What is given is set. A new time is one of `cron`, `at` and `delay`; a `zone` alone moves its cron there."""

    cron: str | None = Field(default=None, max_length=200, description=_CRON)
    at: str | None = Field(default=None, max_length=100, description=_AT)
    delay: str | None = Field(default=None, max_length=100, description=_DELAY)
    zone: str | None = Field(default=None, max_length=100, description=_ZONE)
    title: str | None = Field(default=None, max_length=500)
    text: str | None = None
    args: dict[str, JsonValue] | None = None
    condition: Condition | None = None
    missed: MissedPolicy | None = Field(default=None, description=_MISSED)
    overlap: OverlapPolicy | None = Field(default=None, description=_OVERLAP)


class PreviewBody(WhenBody):
    model_config = ConfigDict(json_schema_extra={"examples": [{"cron": "30 2 * * *", "zone": "Europe/Berlin"}]})

    count: int = Field(default=5, ge=1, le=50)


class MadeBy(Answer):
    kind: Literal["person", "model"]
    by: str | None = Field(default=None, description="Who it was, if a person.")
    turn_id: str | None = Field(default=None, description="In which turn, if a model.")


class Schedule(Answer):
    """Makes an input or a task in a session at its times. It was so at the time of the answer."""

    model_config = ConfigDict(frozen=True)

    id: ScheduleId
    session_id: SessionId
    kind: Literal["message", "tool", "monitor"]
    title: str | None
    text: str | None
    tool: str | None
    args: dict[str, Any]
    condition: dict[str, Any] | None = Field(description="Of a monitor.")
    cron: str | None
    at: datetime | None = Field(description="Of one that fires once.")
    zone: str
    missed: MissedPolicy
    overlap: OverlapPolicy
    state: ScheduleStateName
    reason: str | None = Field(
        description="Why it is paused or has ended: asked, session_archived, agent_gone, tool_gone, broken, done, "
        "canceled."
    )
    next_at: datetime | None = Field(description="In its zone.")
    fired: int = Field(description="How often it has fired.")
    last_fired_at: datetime | None = Field(description="In its zone.")
    last_result: Any = Field(description="Of a monitor: what its last check came to.")
    last_error: dict[str, Any] | None = Field(default=None, description="Of a monitor: why its last check failed.")
    task_id: TaskId | None = Field(description="The task that a monitor is.")
    made_by: MadeBy
    created_at: datetime
    updated_at: datetime


class Fire(Answer):
    """What became of a time. `fired`: its input or task was made; `ran`: that has begun."""

    number: int
    due_at: datetime = Field(description="In the schedule's zone.")
    at: datetime = Field(description="When it was decided.")
    how: Literal["due", "triggered"]
    outcome: Literal["fired", "ran", "removed", "queued", "skipped", "failed"]
    reason: str | None
    detail: str | None
    late_seconds: float
    count: int = Field(description="For so many times it stands.")
    input_id: InputId | None
    turn_id: TurnId | None = Field(description="In which the model saw its input.")
    task_id: TaskId | None
    ran_at: datetime | None


class Preview(Answer):
    """The next times, in the zone and in UTC."""

    zone: str
    times: list[datetime]
    utc: list[datetime]
