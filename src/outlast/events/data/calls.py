"""What `data` holds in events of the calls of tools."""

from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict


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
    progress: dict[str, Any] | None


class CallEnded(TypedDict):
    call_id: str
    tool: str
    outcome: Annotated[
        str,
        Field(description="success, failed, retried, interrupted; parked if it goes on in the background"),
    ]
    part: Annotated[dict[str, Any], Field(description="what the model is given")]
    content: NotRequired[Annotated[Any, Field(description="files")]]
    artifacts: NotRequired[Annotated[Any, Field(description="files")]]
    task_id: NotRequired[Annotated[str, Field(description="if it goes on as a task")]]
    usage: NotRequired[Annotated[dict[str, Any] | None, Field(description="of agents that its tool ran")]]
    narration: NotRequired[Annotated[str, Field(description="what became of it, in words for people")]]
    is_unknown: NotRequired[
        Annotated[bool, Field(description="of an interrupted one: whether nobody knows its effect; left out: true")]
    ]


class CallSettled(TypedDict):
    """A person says what became of a call whose effect nobody knew."""

    call_id: str
    tool: str
    verdict: Annotated[str, Field(description="worked, failed, try_again")]
    by: str
    note: NotRequired[str]
