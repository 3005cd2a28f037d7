"""What `data` holds in events of a session and of what is said to it."""

from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict


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
    metadata: dict[str, Any]
    model: str | None
    is_archived: bool
    read_to: int
    is_unread: bool
    permissions: dict[str, Any] | None
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
    by: NotRequired[Annotated[str, Field(description="who said a message; of what a parent session asks, a task's id")]]
    place: NotRequired[Annotated[int, Field(description="among the messages that wait, if the session was at work")]]
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
    by: NotRequired[Annotated[str, Field(description="who said a message; of what a parent session asks, a task's id")]]
    files: NotRequired[list[InputFile]]
    task_ids: NotRequired[Annotated[list[str], Field(description="the tasks that it tells of")]]
