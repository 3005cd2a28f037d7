"""What a client of the AI SDK asks for: the request body of its chat transport.

A client sends all messages it has. Only the last one counts: the rest stands in the session already. One that is to be
answered must be the user's, and its id is the idempotency key: the same message sent twice is one message.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import unquote_to_bytes

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from outlast.errors import InvalidInput
from outlast.values.check import check_characters
from outlast.wire.attachment import Attachment
from outlast.wire.message import WhenBusy

MAX_ID = 200

Id = Annotated[str, Field(min_length=1, max_length=MAX_ID)]


class _Approval(BaseModel):
    """Of a call that asks for one; once somebody has decided, with what."""

    id: str
    approved: StrictBool | None = None
    reason: str | None = None


class _Part(BaseModel):
    """A part of a message; which fields it has follows from its type."""

    type: str
    text: str | None = None
    url: str | None = None
    media_type: str | None = Field(None, alias="mediaType")
    filename: str | None = None
    state: str | None = None
    approval: _Approval | None = None


class _Message(BaseModel):
    id: Id
    role: str
    parts: list[_Part]


class _Body(BaseModel):
    """Fields that an application adds for itself are let through."""

    model_config = ConfigDict(extra="ignore")

    id: Id
    messages: Annotated[list[Any], Field(min_length=1)]
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    when_busy: WhenBusy = "steer"
    model: str | None = None
    agent: str | None = None
    approvals: bool = True


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided of the call of a task."""

    task_id: str
    is_approved: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """`message_id`, `text` and `files` are of the client's last message.

    When an answer is to be made again, the client has taken it off its list: the last message is what stood before it,
    and may be an answer too (`is_said` False).
    """

    chat_id: str
    message_id: str
    text: str
    files: Sequence[Attachment]
    is_said: bool
    is_regenerate: bool
    when_busy: WhenBusy
    model: str | None
    agent: str | None
    """For a chat that begins with this message; one that there is keeps its own."""
    has_approvals: bool = True
    """Its client knows of requests for approvals; version 5 does not."""
    decisions: Sequence[Decision] = ()
    """Of the client's last answer, when that is what it sends: nothing is said then."""


def parse(body: object) -> ChatRequest:
    """The request in a body that was read as JSON. Raises `InvalidInput` that says what is wrong with it."""
    try:
        asked = _Body.model_validate(body)
        last = _Message.model_validate(asked.messages[-1])
    except ValidationError as exc:
        raise InvalidInput(f"This is not a request of an AI SDK chat transport: {_first(exc)}.") from exc
    check_characters(asked.id + last.id, "id of the chat or message")
    is_said, is_regenerate = last.role == "user", asked.trigger == "regenerate-message"
    decisions = [] if is_said or is_regenerate else _decisions(last)
    if not is_said and not is_regenerate and not decisions:
        raise InvalidInput(f"The last message must be the user's; this one has the role {last.role!r}.")
    return ChatRequest(
        chat_id=asked.id,
        message_id=last.id,
        text="\n\n".join(part.text for part in last.parts if part.type == "text" and part.text),
        files=[_file(part) for part in last.parts if part.type == "file"] if is_said else [],
        is_said=is_said,
        is_regenerate=is_regenerate,
        when_busy=asked.when_busy,
        model=asked.model,
        agent=asked.agent,
        has_approvals=asked.approvals,
        decisions=decisions,
    )


def _decisions(answer: _Message) -> list[Decision]:
    found = [each.approval for each in answer.parts if each.state == "approval-responded" and each.approval]
    return [Decision(each.id, each.approved, each.reason or "") for each in found if each.approved is not None]


def _first(exc: ValidationError) -> str:
    error = exc.errors()[0]
    place = ".".join(str(each) for each in error["loc"])
    return f"{place or 'the body'}: {error['msg']}"


def _file(part: _Part) -> Attachment:
    """A file comes in its URL: nothing is fetched for a client."""
    url = part.url or ""
    if not url.startswith("data:"):
        raise InvalidInput("A file must come as a data: URL; other URLs are not fetched.")
    head, comma, body = url[len("data:") :].partition(",")
    media_type, *options = head.split(";")
    try:
        data = base64.b64decode(body, validate=True) if "base64" in options else unquote_to_bytes(body)
    except ValueError as exc:
        raise InvalidInput("The data: URL of a file is not valid base64.") from exc
    if not comma:
        raise InvalidInput("The data: URL of a file has no comma before its data.")
    return Attachment(part.filename or "file", data, part.media_type or media_type or "application/octet-stream")
