"""What `data` holds in events of schedules."""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict


class ScheduleSnapshot(TypedDict):
    """A schedule. Times are in its zone."""

    id: str
    kind: Annotated[str, Field(description="message, tool, monitor")]
    title: str | None
    tool: str | None
    text: Annotated[str | None, Field(description="the first of what it says")]
    cron: str | None
    at: Annotated[str | None, Field(description="of one that fires once")]
    zone: str
    state: Annotated[str, Field(description="active, paused, ended")]
    reason: Annotated[str | None, Field(description="why it is paused or has ended")]
    next_at: str | None
    missed: str
    overlap: str
    made_by: dict[str, Any]
    task_id: Annotated[str | None, Field(description="the task that a monitor is")]


class ScheduleTold(TypedDict):
    schedule: ScheduleSnapshot


class ScheduleFired(TypedDict):
    """What became of a time at which it was due. That it has fired does not say that its input or task has begun."""

    schedule_id: str
    title: str
    number: Annotated[int, Field(description="in its history")]
    due_at: str
    how: Annotated[str, Field(description="due, triggered")]
    outcome: Annotated[str, Field(description="fired; skipped and failed if it was not")]
    late_seconds: float
    reason: Annotated[str | None, Field(description="why it was not")]
    detail: str | None
    count: Annotated[int, Field(description="for so many times this stands")]
    input_id: str | None
    task_id: str | None
    next_at: str | None


class ScheduleDeleted(TypedDict):
    schedule_id: str
