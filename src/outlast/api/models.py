"""What goes over the wire: bodies that are read, answers that are given."""

import base64
import binascii
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from outlast.errors import InvalidInput
from outlast.events.event import Event
from outlast.events.outcome import Outcome
from outlast.ids import SessionId
from outlast.sessions.attachments import Attachment, Context
from outlast.sessions.session import Sent, Session
from outlast.store.inputs import Input
from outlast.store.outputs import Piece
from outlast.store.tasks import Task

ItemT = TypeVar("ItemT")
SESSION_ID = "ses_01jy8fk2v6h3r9x4q0z5w7t1na"
TASK_ID = "tsk_01jy8fm0a9b8c7d6e5f4g3h2jk"
TURN_ID = "trn_01jy8fk9p2s4u6w8y0a1c3e5gh"
INPUT_ID = "inp_01jy8fk8m1n3p5r7t9v1x3z5bd"


class Body(BaseModel):
    """What a client sends: nothing unknown, so that a misspelt name is told and not ignored."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Answer(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class ListOf(BaseModel, Generic[ItemT]):
    """A page. `next` is the cursor of the next one, null on the last."""

    items: list[ItemT]
    next: str | None = None


class SessionBody(Body):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"title": "Trip to Oslo", "metadata": {"team": "travel"}}]}
    )

    agent: str | None = Field(default=None, description="Which agent; the first one if left out.")
    model: str | None = Field(default=None, description="A model of the server's allow-list.")
    title: str | None = Field(default=None, max_length=1_000)
    metadata: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    external_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="Your own name for it: found again instead of made twice.",
    )


class SessionChange(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"title": "Trip to Bergen"}]})

    title: str | None = Field(default=None, max_length=1_000)
    metadata: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    model: str | None = None
    is_archived: bool = False
    read_to: int = Field(default=0, ge=0, lt=2**63, description="The number of the last event that was seen.")


class ForkBody(Body):
    at: int | None = Field(default=None, ge=0, lt=2**31, description="The last message to take along; all if left out.")
    title: str | None = Field(default=None, max_length=1_000)


class SessionAnswer(Answer):
    """A conversation that outlives processes."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": SESSION_ID,
                    "title": "Trip to Oslo",
                    "agent": "travel",
                    "model": None,
                    "state": "idle",
                    "turn_id": None,
                    "is_archived": False,
                    "is_unread": False,
                    "external_id": None,
                    "metadata": {"team": "travel"},
                    "last_event": 1,
                    "created_at": "2026-11-15T12:00:00Z",
                    "updated_at": "2026-11-15T12:00:00Z",
                }
            ]
        }
    )

    id: str
    title: str | None
    agent: str
    model: str | None
    state: Literal["idle", "queued", "running", "held"]
    turn_id: str | None
    is_archived: bool
    is_unread: bool
    external_id: str | None
    metadata: dict[str, JsonValue]
    last_event: int
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, session: Session) -> "SessionAnswer":
        return cls.model_validate(session, from_attributes=True)


class ContextBody(Body):
    """Where the user is while writing; shown to the model as data."""

    content: str = Field(max_length=32_000)
    url: str | None = Field(default=None, max_length=2_000)


class FileBody(Body):
    name: str = Field(min_length=1, max_length=500)
    media_type: str = Field(default="application/octet-stream", max_length=200)
    data: str = Field(description="The bytes in base 64.")

    @property
    def attachment(self) -> Attachment:
        try:
            return Attachment(self.name, base64.b64decode(self.data, validate=True), self.media_type)
        except (binascii.Error, ValueError) as exc:
            raise InvalidInput(f"The data of the file {self.name!r} is not base 64.") from exc


class MessageBody(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Find me a flight to Oslo on Friday."}]})

    text: str = Field(min_length=1)
    when_busy: Literal["steer", "queue", "interrupt", "reject"] = Field(
        default="steer",
        description="If a turn runs: at its next step, in a turn of its own, stop it first, or refuse.",
    )
    context: ContextBody | None = None
    files: list[FileBody] = Field(default_factory=list[FileBody], max_length=20)
    model: str | None = None

    @property
    def page(self) -> Context | None:
        return None if self.context is None else Context(self.context.content, self.context.url)


class AcceptedAnswer(Answer):
    """The message is kept, whatever happens. `position`: its place among those that wait, null if none do."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"input_id": INPUT_ID, "turn_id": TURN_ID, "position": None, "is_repeat": False}]
        }
    )

    input_id: str
    turn_id: str | None
    position: int | None
    is_repeat: bool

    @classmethod
    def of(cls, sent: Sent) -> "AcceptedAnswer":
        return cls(input_id=sent.input.id, turn_id=sent.turn_id, position=sent.place, is_repeat=sent.is_repeat)


class StoredMessage(Answer):
    """One entry of the history, as pydantic-ai has it."""

    position: int
    turn_id: str | None
    event: int
    message: dict[str, JsonValue]


class InputAnswer(Answer):
    """A message that waits."""

    id: str
    kind: str
    mode: str
    state: str
    text: str
    turn_id: str | None
    created_at: datetime

    @classmethod
    def of(cls, found: Input) -> "InputAnswer":
        return cls.model_validate(found, from_attributes=True)


class InputChange(Body):
    text: str = Field(min_length=1)


class EventAnswer(Answer):
    """A fact in the log. `number` is null only for what is said to one reader (`stream.*`)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "number": 7,
                    "type": "part.delta",
                    "at": "2026-11-15T12:00:01Z",
                    "session_id": SESSION_ID,
                    "turn_id": TURN_ID,
                    "task_id": None,
                    "data": {"part": "0.0", "offset": 0, "text": "Hello"},
                }
            ]
        }
    )

    number: int | None
    type: str
    at: datetime
    session_id: str
    turn_id: str | None
    task_id: str | None
    data: dict[str, JsonValue]

    @classmethod
    def of(cls, event: Event) -> "EventAnswer":
        return cls.model_validate(event, from_attributes=True)


class EventPage(BaseModel):
    """Events after a position. Ask again with `after=next`; `next` stands where this page ends."""

    items: list[EventAnswer]
    next: int


class FeedPage(BaseModel):
    """Events over all sessions. Ask again with `after=next`."""

    items: list[EventAnswer]
    next: str


class CallAnswer(Answer):
    call_id: str
    tool: str
    args: JsonValue
    outcome: str | None
    result: JsonValue


class UsageAnswer(Answer):
    """Tokens and money. `cost_microdollars` is null when it is not known."""

    requests: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_microdollars: int | None


class OutcomeAnswer(Answer):
    """What a turn came to, or has come to so far."""

    turn_id: str | None
    state: Literal["queued", "running", "completed", "failed", "stopped"]
    text: str
    reasoning: str
    output: JsonValue
    calls: list[CallAnswer]
    usage: UsageAnswer
    error: dict[str, JsonValue] | None
    attempt: int
    is_over: bool

    @classmethod
    def of(cls, outcome: Outcome) -> "OutcomeAnswer":
        return cls.model_validate(outcome, from_attributes=True)


class StopBody(Body):
    cascade: bool = Field(default=False, description="Also cancel the session's background tasks.")


class TurnAnswer(Answer):
    turn_id: str | None
    state: str


class TaskAnswer(Answer):
    """Durable background work. `result` may be a view of something larger: see `output`."""

    id: str
    session_id: str
    turn_id: str | None
    call_id: str | None
    kind: str
    tool: str | None
    title: str
    args: JsonValue
    state: Literal["queued", "running", "awaiting_input", "succeeded", "failed", "canceled"]
    is_cancel_requested: bool
    detail: str | None
    progress: dict[str, JsonValue] | None
    result: JsonValue
    error: dict[str, JsonValue] | None
    late_outcome: dict[str, JsonValue] | None
    artifacts: list[dict[str, JsonValue]]
    metadata: dict[str, JsonValue]
    wake: str
    group: str | None
    attempt: int
    deadline_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @classmethod
    def of(cls, task: Task) -> "TaskAnswer":
        own = {name: getattr(task, name) for name in cls.model_fields if hasattr(task, name)}
        is_cancel_requested = task.cancel_requested_at is not None
        return cls.model_validate({**own, "args": task.spec.get("args"), "is_cancel_requested": is_cancel_requested})


class CancelBody(Body):
    wait: float = Field(default=10, ge=0, le=300, description="How long to wait for the truth.")


class SettleBody(Body):
    verdict: Literal["worked", "failed", "try_again"]
    note: str = Field(default="", max_length=2_000)


class ReplyBody(Body):
    reply: JsonValue


class PieceAnswer(Answer):
    """A part of an output. `cut` characters before it are no longer kept; read on with `after=next_offset`."""

    text: str
    offset: int
    next_offset: int
    total: int
    cut: int

    @classmethod
    def of(cls, piece: Piece) -> "PieceAnswer":
        return cls.model_validate(piece, from_attributes=True)


def ids_of(text: str | None) -> Sequence[SessionId]:
    """Ids in one parameter, separated by commas."""
    return [SessionId(each) for each in (text or "").split(",") if each]


Limit = Annotated[int, Field(ge=1, le=500)]
