"""Messages on the wire: sent, waiting, stored."""

import base64
import binascii
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

from pydantic import ConfigDict, Field, JsonValue

from outlast.errors import InvalidInput
from outlast.wire.attachment import Attachment, Context
from outlast.wire.forms import INPUT_ID, TURN_ID, Answer, Body, Said

WhenBusy = Literal["steer", "queue", "interrupt", "reject"]


class SendOptions(TypedDict, total=False):
    """What may go with a message. To a session at work it steers, unless `when_busy` says otherwise."""

    when_busy: WhenBusy
    context: Context | None
    files: Sequence[Attachment | str]
    model: str | None
    by: str | None
    idempotency_key: str | None


class ContextBody(Body):
    """Where the user is while writing; shown to the model as data."""

    content: str = Field(max_length=32_000)
    url: str | None = Field(default=None, max_length=2_000)


class FileBody(Body):
    """A file that belongs to a message. It is kept with its session; models that take it are shown it."""

    name: str = Field(min_length=1, max_length=500)
    media_type: str = Field(default="application/octet-stream", max_length=200)
    data: str = Field(description="The bytes in base 64.")

    @classmethod
    def of(cls, file: Attachment) -> "FileBody":
        return cls(name=file.name, media_type=file.media_type, data=base64.b64encode(file.data).decode())

    @property
    def attachment(self) -> Attachment:
        try:
            return Attachment(self.name, base64.b64decode(self.data, validate=True), self.media_type)
        except (binascii.Error, ValueError) as exc:
            raise InvalidInput(f"The data of the file {self.name!r} is not base 64.") from exc


class FileIdBody(Body):
    """A file that is there already, of any session of yours."""

    id: str = Field(min_length=1, max_length=200)


class MessageBody(Said):
    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Find me a flight to Oslo on Friday."}]})

    text: str = Field(min_length=1)
    when_busy: WhenBusy = Field(
        default="steer",
        description="If a turn runs: at its next step, in a turn of its own, stop it first, or refuse.",
    )
    context: ContextBody | None = None
    files: list[FileBody | FileIdBody] = Field(default_factory=list[FileBody | FileIdBody], max_length=20)
    model: str | None = None

    @property
    def attachments(self) -> list[Attachment | str]:
        return [each.id if isinstance(each, FileIdBody) else each.attachment for each in self.files]

    @property
    def page(self) -> Context | None:
        return None if self.context is None else Context(self.context.content, self.context.url)


class AcceptedAnswer(Answer):
    """The message is kept, whatever happens. `position`: its place among those that wait, null if none do.

    `after`: the events after this number tell what becomes of it.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"input_id": INPUT_ID, "turn_id": TURN_ID, "position": None, "is_repeat": False, "after": 1}]
        }
    )

    input_id: str
    turn_id: str | None
    position: int | None
    is_repeat: bool
    after: int = 0

    @classmethod
    def of(cls, thing: Any) -> "AcceptedAnswer":
        """Of what `Session.send` gave."""
        return cls(
            input_id=thing.input.id,
            turn_id=thing.turn_id,
            position=thing.place,
            is_repeat=thing.is_repeat,
            after=thing.after,
        )


class StoredMessage(Answer):
    """One entry of the history, as pydantic-ai has it."""

    position: int
    turn_id: str | None
    event: int
    superseded_by: str | None = Field(description="The turn that was made instead; the model no longer sees this.")
    message: dict[str, JsonValue]


class InputAnswer(Answer):
    """A message, or something that the runtime tells, and what became of it."""

    id: str
    kind: str
    mode: str
    state: str
    text: str
    turn_id: str | None
    by: str | None = Field(default=None, description="Who said it; of what a parent session asks, its task's id.")
    place: int | None = Field(default=None, description="Its place among the messages that wait, while it does.")
    task_ids: list[str] = Field(
        default_factory=list[str], description="The tasks that it tells of: a wake tells how they ended."
    )
    created_at: datetime


class InputChange(Body):
    text: str = Field(min_length=1)
