"""What `data` holds in events of tasks, and of what they ask somebody for."""

from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict


class TaskSnapshot(TypedDict):
    """A task without its bodies."""

    id: str
    kind: NotRequired[str]
    agent: NotRequired[str]
    tool: NotRequired[str | None]
    call_id: NotRequired[str | None]
    title: str
    state: str
    detail: NotRequired[str | None]
    progress: NotRequired[dict[str, Any] | None]
    error: NotRequired[dict[str, Any] | None]
    artifacts: NotRequired[list[dict[str, Any]]]
    attempt: NotRequired[int]
    wake: NotRequired[str]
    is_cancel_requested: NotRequired[bool]
    settled: NotRequired[dict[str, Any] | None]
    links: NotRequired[dict[str, str]]
    parked: NotRequired[dict[str, Any] | None]
    args: NotRequired[Annotated[Any, Field(description="an object whose long values are cut")]]
    narration: NotRequired[Annotated[str | None, Field(description="what it does or did, in words for people")]]
    group: NotRequired[str | None]
    worker_id: NotRequired[str | None]
    needs: NotRequired[
        Annotated[str | None, Field(description="what somebody must do: approval, question, connection")]
    ]
    created_at: NotRequired[str | None]
    started_at: NotRequired[str | None]
    ended_at: NotRequired[str | None]
    deadline_at: NotRequired[str | None]
    result_preview: NotRequired[Annotated[str | None, Field(description="how its result begins")]]
    late_outcome: NotRequired[
        Annotated[dict[str, Any] | None, Field(description="what it came to after its end had been told")]
    ]
    output_size: NotRequired[Annotated[int | None, Field(description="in characters, once it has ended")]]
    last_line: NotRequired[Annotated[str | None, Field(description="of its output, likewise")]]
    ran_seconds: NotRequired[float | None]
    usage: NotRequired[dict[str, Any] | None]
    request: NotRequired[dict[str, Any] | None]
    origin: NotRequired[str]
    place: NotRequired[Annotated[int, Field(description="among those that wait in its session")]]


class TaskTold(TypedDict):
    task: TaskSnapshot


class TaskRequest(TypedDict):
    """What a task asks somebody for."""

    id: str
    kind: Annotated[str, Field(description="approval, question, connection")]
    prompt: str
    schema: NotRequired[Annotated[dict[str, Any] | None, Field(description="of the answer")]]
    args: NotRequired[Annotated[Any, Field(description="of the call that is to be approved")]]
    url: NotRequired[str | None]
    provider: NotRequired[str | None]
    asked_at: NotRequired[str]
    deadline_at: NotRequired[str | None]


class RequestOpened(TypedDict):
    """A task needs somebody."""

    request: TaskRequest
    tool: NotRequired[str | None]
    title: str


class RequestClosed(TypedDict):
    request_id: str
    kind: str
    how: Annotated[str, Field(description="answered, approved, refused, withdrawn, expired, ended")]
    by: NotRequired[str | None]
    by_kind: NotRequired[Annotated[str, Field(description="person, model")]]
    at: NotRequired[str]
    value: NotRequired[Annotated[Any, Field(description="the answer")]]
    args_changed: NotRequired[Annotated[bool, Field(description="it was approved with other arguments")]]
    args: NotRequired[Annotated[Any, Field(description="of the call that was decided, as it runs")]]
    reason: NotRequired[str]


class TaskOutput(TypedDict):
    """A piece of the raw output of a task that was asked for."""

    task_id: str
    offset: Annotated[int, Field(description="characters before it")]
    next_offset: Annotated[int, Field(description="to read on from")]
    text: str
    cut: Annotated[int, Field(description="characters just before it that are no longer kept")]
