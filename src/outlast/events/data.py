"""What `data` of an event holds, one TypedDict for each type. A field that came later may be missing in older events.

From these the checks of stored events, the events reference and the schemas of the HTTP API are made.
"""

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from outlast.events.types import EventType

JsonData = dict[str, Any]


class SessionCreated(TypedDict):
    agent: str
    title: str | None
    external_id: NotRequired[str]
    forked_from: NotRequired[Annotated[str, Field(description="a session's id")]]
    imported_from: NotRequired[Annotated[str, Field(description="a session's id")]]
    is_dry_run: NotRequired[Annotated[bool, Field(description="if it is one")]]


class SessionChanged(TypedDict, total=False):
    """What has changed, and nothing else."""

    title: str | None
    title_from: str
    metadata: JsonData
    model: str | None
    is_archived: bool
    read_to: int
    is_unread: bool
    permissions: JsonData | None
    is_dry_run: bool


class SessionHeld(TypedDict):
    reason: str


class SessionResumed(TypedDict):
    pass


class SessionFlagged(TypedDict):
    reason: str
    woken_turns: NotRequired[int]
    type: NotRequired[Annotated[str, Field(description="of an event that cannot be read, in whose place this stands")]]
    kind: NotRequired[str]
    message: NotRequired[str]


class SessionDeleted(TypedDict):
    """It is the last event that anybody gets of the session."""


class InputFile(TypedDict):
    id: str
    name: str
    media_type: str
    bytes: int


class InputAccepted(TypedDict):
    input_id: str
    kind: Annotated[str, Field(description="message, wake, settlement, request")]
    mode: NotRequired[str]
    text: str
    key: NotRequired[Annotated[str, Field(description="the idempotency key of a person's message")]]
    files: NotRequired[list[InputFile]]
    task_ids: NotRequired[Annotated[list[str], Field(description="the tasks that it tells of")]]


class InputEdited(TypedDict):
    input_id: str
    text: str


class InputRemoved(TypedDict):
    input_id: str
    reason: NotRequired[Annotated[str, Field(description="withdrawn: the model has its news by another way")]]


class InputDelivered(TypedDict):
    input_id: str
    kind: Annotated[str, Field(description="message, wake, settlement, request")]
    mode: NotRequired[str]
    text: str
    message: NotRequired[Annotated[int, Field(description="its position in history")]]
    key: NotRequired[Annotated[str, Field(description="the idempotency key of a person's message")]]
    files: NotRequired[list[InputFile]]
    task_ids: NotRequired[Annotated[list[str], Field(description="the tasks that it tells of")]]


class TurnQueued(TypedDict):
    origin: str
    place: NotRequired[Annotated[int, Field(description="of those that wait, if it waits")]]
    until: NotRequired[Annotated[str, Field(description="if the daily limit is reached")]]
    regenerates: NotRequired[Annotated[str, Field(description="the turn whose answer it replaces")]]


class TurnStarted(TypedDict):
    attempt: int
    worker_id: str | None
    model: NotRequired[str | None]


class TurnResumed(TypedDict):
    attempt: int
    worker_id: str | None
    dropped: NotRequired[Annotated[list[str], Field(description="parts that readers discard")]]


class TurnCompleted(TypedDict):
    output: NotRequired[Any]
    output_type: NotRequired[Annotated[str | None, Field(description="which, if the agent declares several")]]
    output_fields: NotRequired[
        Annotated[
            Any,
            Field(description="the same by the names of its fields, if it cannot be read back from the output"),
        ]
    ]
    text: NotRequired[Annotated[str | None, Field(description="only a closing line that the runtime added")]]
    usage: NotRequired[JsonData | None]


class TurnFailed(TypedDict):
    kind: str
    message: str
    is_retryable: NotRequired[bool]
    reference: NotRequired[str | None]
    usage: NotRequired[JsonData | None]


class TurnStopped(TypedDict):
    reason: str
    usage: NotRequired[JsonData | None]


class PartStarted(TypedDict):
    part: str
    kind: Annotated[str, Field(description="text, reasoning, call, file")]
    call_id: NotRequired[Annotated[str | None, Field(description="of a call")]]
    tool: NotRequired[Annotated[str | None, Field(description="of a call")]]


class PartDelta(TypedDict):
    part: str
    offset: Annotated[int, Field(description="in characters")]
    text: str
    first: NotRequired[Annotated[int | None, Field(description="after a fold")]]
    marks: NotRequired[Annotated[list[tuple[int, int]] | None, Field(description="after a fold")]]


class PartEnded(TypedDict):
    part: str
    length: NotRequired[int]


class ResponseCompleted(TypedDict):
    message: NotRequired[Annotated[int, Field(description="its position in history")]]
    model: NotRequired[str | None]
    usage: JsonData
    finish: NotRequired[str | None]


class ResponseDropped(TypedDict):
    reason: NotRequired[str]
    dropped: Annotated[list[str], Field(description="parts that readers discard")]
    retry_in: NotRequired[Annotated[float | None, Field(description="seconds")]]


class CallStarted(TypedDict):
    call_id: str
    tool: str
    args: NotRequired[Any]
    narration: NotRequired[Annotated[str, Field(description="what it does, in words for people")]]


class CallWaiting(TypedDict):
    call_id: str
    tool: str
    reason: Annotated[str, Field(description="why the turn waits for it past its budget")]


class CallProgress(TypedDict):
    call_id: str
    progress: JsonData | None


class CallEnded(TypedDict):
    call_id: str
    tool: str
    outcome: Annotated[
        str,
        Field(description="success, failed, retried, interrupted; parked if it goes on in the background"),
    ]
    part: Annotated[JsonData, Field(description="what the model is given")]
    content: NotRequired[Annotated[Any, Field(description="files")]]
    artifacts: NotRequired[Annotated[Any, Field(description="files")]]
    task_id: NotRequired[Annotated[str, Field(description="if it goes on as a task")]]
    usage: NotRequired[Annotated[JsonData | None, Field(description="of agents that its tool ran")]]
    narration: NotRequired[Annotated[str, Field(description="what became of it, in words for people")]]


class CallSettled(TypedDict):
    """A person says what became of a call whose effect nobody knew."""

    call_id: str
    tool: str
    verdict: Annotated[str, Field(description="worked, failed, try_again")]
    by: str
    note: NotRequired[str]


class HistoryCompacted(TypedDict):
    """What the model is sent of the history was shortened; what is stored is not."""

    messages: int
    results_cut: int
    characters_before: int
    characters_after: int
    reason: Annotated[str, Field(description="window, refused_as_too_long, summarised")]
    summary: NotRequired[Annotated[str, Field(description="what the model is sent in place of the oldest messages")]]
    up_to: NotRequired[Annotated[int, Field(description="the position of the last of them in history")]]


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
    progress: NotRequired[JsonData | None]
    error: NotRequired[JsonData | None]
    artifacts: NotRequired[list[JsonData]]
    attempt: NotRequired[int]
    wake: NotRequired[str]
    is_cancel_requested: NotRequired[bool]
    settled: NotRequired[JsonData | None]
    links: NotRequired[dict[str, str]]
    parked: NotRequired[JsonData | None]
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
        Annotated[JsonData | None, Field(description="what it came to after its end had been told")]
    ]
    output_size: NotRequired[Annotated[int | None, Field(description="in characters, once it has ended")]]
    last_line: NotRequired[Annotated[str | None, Field(description="of its output, likewise")]]
    ran_seconds: NotRequired[float | None]
    usage: NotRequired[JsonData | None]
    request: NotRequired[JsonData | None]
    origin: NotRequired[str]
    place: NotRequired[Annotated[int, Field(description="among those that wait in its session")]]


class TaskTold(TypedDict):
    task: TaskSnapshot


class TaskRequest(TypedDict):
    """What a task asks somebody for."""

    id: str
    kind: Annotated[str, Field(description="approval, question, connection")]
    prompt: str
    schema: NotRequired[Annotated[JsonData | None, Field(description="of the answer")]]
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
    args: NotRequired[Any]
    reason: NotRequired[str]


class StreamOpened(TypedDict):
    """The first of a feed's stream."""

    cursor: Annotated[str, Field(description="where it begins")]
    now: Annotated[str, Field(description="the server's clock")]
    version: Annotated[str, Field(description="the server's")]
    heartbeat_seconds: float
    outputs: Annotated[dict[str, int], Field(description="where each output begins, by task")]


class StreamLive(TypedDict):
    """All that was there has been told: what follows is told as it happens."""


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
    made_by: JsonData
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


class StreamLagged(TypedDict):
    position: Annotated[int, Field(description="to resume from")]
    behind: int


class StreamExpired(TypedDict):
    first: Annotated[int | None, Field(description="number that is kept")]
    snapshot: JsonData | None


class TaskOutput(TypedDict):
    """A piece of the raw output of a task that was asked for."""

    task_id: str
    offset: Annotated[int, Field(description="characters before it")]
    next_offset: Annotated[int, Field(description="to read on from")]
    text: str
    cut: Annotated[int, Field(description="characters just before it that are no longer kept")]


DATA: Mapping[EventType, type[Any]] = {
    EventType.SESSION_CREATED: SessionCreated,
    EventType.SESSION_CHANGED: SessionChanged,
    EventType.SESSION_HELD: SessionHeld,
    EventType.SESSION_RESUMED: SessionResumed,
    EventType.SESSION_FLAGGED: SessionFlagged,
    EventType.SESSION_DELETED: SessionDeleted,
    EventType.INPUT_ACCEPTED: InputAccepted,
    EventType.INPUT_EDITED: InputEdited,
    EventType.INPUT_REMOVED: InputRemoved,
    EventType.INPUT_DELIVERED: InputDelivered,
    EventType.TURN_QUEUED: TurnQueued,
    EventType.TURN_STARTED: TurnStarted,
    EventType.TURN_RESUMED: TurnResumed,
    EventType.TURN_COMPLETED: TurnCompleted,
    EventType.TURN_FAILED: TurnFailed,
    EventType.TURN_STOPPED: TurnStopped,
    EventType.PART_STARTED: PartStarted,
    EventType.PART_DELTA: PartDelta,
    EventType.PART_ENDED: PartEnded,
    EventType.RESPONSE_COMPLETED: ResponseCompleted,
    EventType.RESPONSE_DROPPED: ResponseDropped,
    EventType.CALL_STARTED: CallStarted,
    EventType.CALL_WAITING: CallWaiting,
    EventType.CALL_PROGRESS: CallProgress,
    EventType.CALL_ENDED: CallEnded,
    EventType.CALL_SETTLED: CallSettled,
    EventType.HISTORY_COMPACTED: HistoryCompacted,
    EventType.TASK_CREATED: TaskTold,
    EventType.TASK_CHANGED: TaskTold,
    EventType.TASK_ENDED: TaskTold,
    EventType.REQUEST_OPENED: RequestOpened,
    EventType.REQUEST_CLOSED: RequestClosed,
    EventType.STREAM_OPENED: StreamOpened,
    EventType.STREAM_LIVE: StreamLive,
    EventType.SCHEDULE_CREATED: ScheduleTold,
    EventType.SCHEDULE_CHANGED: ScheduleTold,
    EventType.SCHEDULE_PAUSED: ScheduleTold,
    EventType.SCHEDULE_FIRED: ScheduleFired,
    EventType.SCHEDULE_SKIPPED: ScheduleFired,
    EventType.SCHEDULE_DELETED: ScheduleDeleted,
    EventType.STREAM_LAGGED: StreamLagged,
    EventType.STREAM_EXPIRED: StreamExpired,
    EventType.TASK_OUTPUT: TaskOutput,
}
"""The type of `data`, by the type of event. Adding a type means adding it here: tests enumerate."""
