"""A background task on the wire."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from outlast.ids import SessionId, TaskId, TurnId
from outlast.wire.forms import Answer, Body, Said
from outlast.wire.task_state import ENDED, TaskState
from outlast.wire.turn import UsageAnswer, Verdict

TaskFilter = Literal["open", "queued", "running", "awaiting_input", "succeeded", "failed", "canceled", "settled"]
"""A state of tasks; `open`: all that have not ended; `settled`: of which a person said what became of them."""


class Settled(Answer):
    verdict: Verdict
    by: str
    at: datetime | None = Field(description="When it was said; null if that was before this was kept.")
    note: str = ""


class ClosedRequest(Answer):
    """What became of a request."""

    how: Literal["answered", "approved", "refused", "withdrawn", "expired", "ended"]
    by: str | None = None
    by_kind: str | None = Field(default=None, description="Who that is: `person` or `model`.")
    at: datetime
    value: JsonValue = Field(default=None, description="The answer to a question.")
    args_changed: bool = Field(default=False, description="It was approved with other arguments: `args`.")
    args: JsonValue = None
    reason: str | None = None


class RequestAnswer(Answer):
    """What a task that is `awaiting_input` asks a person for."""

    id: str
    kind: Literal["approval", "question", "connection"]
    prompt: str
    schema_: dict[str, JsonValue] | None = Field(
        default=None, alias="schema", description="What an answer must look like, as JSON Schema."
    )
    url: str | None = Field(default=None, description="Where it is answered, if that is elsewhere.")
    provider: str | None = Field(default=None, description="To whom a connection is asked for.")
    asked_at: datetime
    deadline_at: datetime | None = None
    args: JsonValue = Field(default=None, description="Of an approval: the arguments that the call would run with.")
    closed: ClosedRequest | None = Field(
        default=None, description="Who closed it, how and when; null while it is open."
    )


class Task(Answer):
    """Durable background work, as it was at the time. `result` may be a view of something larger: see `output`."""

    model_config = ConfigDict(frozen=True)

    id: TaskId
    session_id: SessionId
    turn_id: TurnId | None
    call_id: str | None
    kind: str
    agent: str = ""
    tool: str | None
    title: str
    args: Any
    state: TaskState
    no_worker_for: str | None = Field(
        default=None, description="The agent it waits for, while no worker is there that has it."
    )
    origin: str = Field(default="call", description="`spawn` if it was set going on purpose, else `call`.")
    worker_id: str | None = Field(default=None, description="The worker that has it.")
    narration: str | None = Field(
        default=None, description="What it does or did, in words for people, if its tool has some."
    )
    needs: Literal["approval", "question", "connection"] | None = Field(
        default=None, description="What it waits for somebody to do; `request` says it in full."
    )
    output_size: int | None = Field(default=None, description="Characters that it has put out so far.")
    last_line: str | None = Field(default=None, description="The last line of that.")
    place: int | None = Field(
        default=None, description="Of a spawned task that waits for a place: its number among those of its session."
    )
    is_cancel_requested: bool
    detail: str | None
    progress: dict[str, Any] | None
    request: RequestAnswer | None = Field(default=None, description="What it asks a person for, or asked.")
    result: Any
    error: dict[str, Any] | None
    late_outcome: dict[str, Any] | None
    artifacts: list[dict[str, Any]]
    metadata: dict[str, Any]
    wake: str
    group: str | None
    attempt: int
    deadline_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    usage: UsageAnswer | None = Field(
        default=None, description="What agents used that its tool ran. Null if it ran none, or that is not known."
    )
    settled: Settled | None = Field(
        default=None, description="What a person said of a task whose effect nobody knew; lists show it for the state."
    )
    links: dict[str, str] = Field(
        default_factory=dict[str, str],
        description="`retry_of`: the task that it tries again; `retried_as`: the one that tries it again; "
        "`schedule`: what set it going.",
    )
    may_run_again: bool = Field(default=False, description="Its tool is read-only or idempotent.")
    ran_seconds: float | None = Field(
        default=None, description="How long it ran, once it is over: from the start of its call to its end."
    )
    parked: dict[str, Any] | None = Field(
        default=None,
        description="Of a call that goes on without its turn: the `reason` (budget, steering, stop) and `ran_seconds`.",
    )

    @property
    def name(self) -> str:
        """For people: what it does, else what it is called."""
        return self.narration or self.title

    @property
    def shown_state(self) -> str:
        """For lists: the state, or in its place what a person said of it."""
        return self.state.value if self.settled is None else f"settled: {self.settled.verdict}"

    @property
    def has_worked(self) -> bool:
        """By its own end, or by the word of a person."""
        return self.state is TaskState.SUCCEEDED if self.settled is None else self.settled.verdict == "worked"

    @property
    def since(self) -> datetime:
        """When it began; of one that waits to begin, when it was made."""
        return self.started_at or self.created_at

    @property
    def is_over(self) -> bool:
        return self.state in ENDED


class SpawnBody(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"tool": "survey", "args": {"river": "Loire"}}]})

    tool: str = Field(min_length=1, max_length=200, description="A tool of the session's agent.")
    args: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue], description="As its schema wants them.")
    title: str | None = Field(default=None, max_length=500, description="A few words for people.")
    group: str | None = Field(
        default=None, max_length=200, description="Tasks of one group wake the session once, when all have ended."
    )
    wake: Literal["on_terminal", "silent"] | None = Field(
        default=None, description="Whether its end wakes the session. Default: as its tool says, else it does."
    )


class CancelBody(Body):
    wait: float = Field(default=10, ge=0, le=300, description="How long to wait for the truth.")


class ReplyBody(Said):
    value: JsonValue = Field(description="The answer: a text, or what the request's schema asks for.")
    request_id: str | None = Field(default=None, max_length=100, description="Only if it still asks just this.")


class ApproveBody(Said):
    args: dict[str, JsonValue] | None = Field(default=None, description="Run it with these arguments instead.")
    always: bool | Annotated[str, Field(min_length=1, max_length=2_000)] = Field(
        default=False,
        description="Later calls of the tool in this session run without being asked for, or those that this rule is "
        "about, such as `pay(amount<=100)`.",
    )


class RefuseBody(Said):
    reason: str = Field(default="", max_length=4_000, description="Told to the model.")


class CompletionBody(Body):
    """How an operation ended: `success` with its `result`, or not, with its `error`."""

    success: bool
    result: JsonValue = Field(default=None, description="What it came to. The model reads long ones in pieces.")
    error: JsonValue = Field(default=None, description="Why it failed, in words.")


class CompletionAnswer(Answer):
    """The state in which the task stands. `applied`: this completion ended it; else it had ended before."""

    id: str
    state: TaskState
    applied: bool


class PieceAnswer(Answer):
    """A part of an output. `cut` characters before it are no longer kept; read on with `after=next_offset`."""

    text: str
    offset: int
    next_offset: int
    total: int
    cut: int
    removed_at: datetime | None = Field(
        default=None, description="When it was removed, as `OUTLAST_KEEP_OUTPUT` says: only `total` is known still."
    )


class Match(Answer):
    """A line of an output in which something was found. `offset`: of what was found, in characters."""

    offset: int
    line: str = Field(description="The line, or what of it stands around the match.")


class CountAnswer(Answer):
    count: int
