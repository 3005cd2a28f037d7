"""A session as people see it: its turns as blocks, what waits, its tasks, and the position from which a reader goes on.

What is told after `as_of`, added to a view, gives the view that the server has by then.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from outlast.events.data.tasks import TaskSnapshot
from outlast.wire.forms import Answer
from outlast.wire.session import SessionAnswer
from outlast.wire.turn import UsageAnswer, Verdict

TurnState = Literal["queued", "running", "completed", "failed", "stopped"]
CallState = Literal["asked", "running", "waiting", "ended"]


class Preview(BaseModel):
    """In place of a value that is too large for its page. `href` gives the whole."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    beginning: str = Field(alias="$preview")
    bytes: int
    file_id: str | None = None
    href: str


class Cut(BaseModel):
    """The text beside it is only the beginning: `href` gives the whole. Nothing that comes later is added to it."""

    bytes: int
    href: str


class ShownFile(BaseModel):
    id: str | None = None
    name: str | None = None
    media_type: str
    bytes: int


class CallSettled(BaseModel):
    """What a person said of a call whose effect nobody knew."""

    verdict: Verdict
    by: str | None = None
    note: str = ""
    at: datetime | None = None


class MessageBlock(BaseModel):
    """A person's message, or a parent's, where the model was given it."""

    type: Literal["message"]
    input_id: str
    key: str | None = Field(default=None, description="The idempotency key that it was sent with.")
    text: str
    cut: Cut | None = None
    files: list[ShownFile] = Field(default_factory=list[ShownFile])
    mode: str | None = None
    by: str | None = Field(default=None, description="Who said it; of what a parent session asks, its task's id.")
    at: datetime


class WakeBlock(BaseModel):
    """The end of background tasks, told to the model."""

    type: Literal["wake"]
    input_id: str
    task_ids: list[str] = Field(default_factory=list[str])
    text: str
    cut: Cut | None = None
    at: datetime


class NoteBlock(BaseModel):
    """Something that the runtime tells: the model (`settled`, `request`), or the reader alone."""

    type: Literal["note"]
    kind: str = Field(
        description="settled, request, compacted, closing, flagged. A client shows a kind it does not know as its text."
    )
    text: str
    cut: Cut | None = None
    input_id: str | None = None
    task_ids: list[str] = Field(default_factory=list[str])
    details: dict[str, JsonValue] | None = Field(default=None, description="What the event held besides.")
    at: datetime


class TextBlock(BaseModel):
    """What the model said. `is_open`: it is still being said."""

    type: Literal["text"]
    part: str
    text: str
    cut: Cut | None = None
    is_open: bool


class ReasoningBlock(BaseModel):
    type: Literal["reasoning"]
    part: str
    text: str
    cut: Cut | None = None
    is_open: bool


class FileBlock(BaseModel):
    """A part of an answer that is neither text nor a call, such as an image."""

    type: Literal["file"]
    part: str
    kind: str
    file: ShownFile | None = None
    is_open: bool


class CallBlock(BaseModel):
    """A tool call, where the model asked for it. What goes on in the background is the task `task_id`."""

    type: Literal["call"]
    call_id: str
    part: str | None = None
    tool: str
    args: JsonValue | Preview = None
    narration: str | None = None
    state: CallState
    outcome: str | None = Field(
        default=None, description="success, failed, retried, interrupted, denied; parked: it goes on as a task."
    )
    is_unknown: bool = Field(
        default=False,
        description="It was interrupted, and nobody knew its effect: see `settled` for what was said of it.",
    )
    result: JsonValue | Preview = None
    files: list[ShownFile] = Field(default_factory=list[ShownFile])
    artifacts: list[dict[str, JsonValue]] = Field(default_factory=list[dict[str, JsonValue]])
    task_id: str | None = None
    progress: dict[str, JsonValue] | None = None
    reason: str | None = Field(default=None, description="Why the turn waits for it past its budget.")
    settled: CallSettled | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


Block = Annotated[
    MessageBlock | WakeBlock | NoteBlock | TextBlock | ReasoningBlock | FileBlock | CallBlock,
    Field(discriminator="type"),
]


class TurnError(BaseModel):
    kind: str
    message: str
    is_retryable: bool = False
    reference: str | None = None


class TurnView(BaseModel):
    """A turn, folded from its events. Parts that were dropped are not there."""

    id: str
    origin: str
    state: TurnState
    attempt: int
    model: str | None = None
    place: int | None = Field(default=None, description="Among those that wait for a place, while it does.")
    until: str | None = Field(default=None, description="When it may begin, while the daily limit is reached.")
    regenerates: str | None = Field(default=None, description="The turn in whose place it stands.")
    replaced_by: str | None = None
    queued_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    kept: list[Block] = Field(
        default_factory=list[Block],
        description="Of the turn that it replaces, up to the last thing said to the model: shown before its own.",
    )
    blocks: list[Block] = Field(description="In the order in which the model was told them and said them.")
    left_out: int = Field(default=0, description="Its first blocks that did not fit into the page: so many.")
    text: str = Field(description="What the model said last, or the closing line.")
    cut: Cut | None = None
    output: JsonValue | Preview = None
    output_type: str | None = None
    usage: UsageAnswer
    error: TurnError | None = None
    stop_reason: str | None = None


class Waiting(BaseModel):
    """An input that was accepted and that the model was not given yet."""

    input_id: str
    kind: str
    mode: str | None = None
    text: str
    cut: Cut | None = None
    key: str | None = None
    task_ids: list[str] = Field(
        default_factory=list[str], description="The tasks that a wake tells of: `tasks` has how each of them ended."
    )
    files: list[ShownFile] = Field(default_factory=list[ShownFile])
    by: str | None = Field(default=None, description="Who said it; of what a parent session asks, its task's id.")
    place: int | None = Field(default=None, description="Of a message: its place among those that wait, from 1.")
    created_at: datetime


class SessionView(Answer):
    """A page of a session, at most 1 MiB, as it was after the event `as_of`.

    Go on with `GET /v1/events?after={feed}&sessions={id}:{as_of}`.
    """

    as_of: int
    feed: str = Field(description="Where the owner's feed stood at the same moment.")
    session: SessionAnswer
    turns: list[TurnView] = Field(description="Oldest first; the one that runs or waits is the last.")
    next: str | None = Field(description="Give it as `before` for the turns before these; null: there are none.")
    inbox: list[Waiting] = Field(description="In the order in which they were accepted.")
    tasks: list[TaskSnapshot] = Field(description="Open ones, and those that blocks of this page or the inbox name.")
    tasks_left_out: int = Field(default=0, description="Open tasks that did not fit: see `GET /v1/tasks`.")
