"""What `data` holds in events of turns, of what their models say, and of what is sent of history."""

from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict


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
    usage: NotRequired[dict[str, Any] | None]


class TurnFailed(TypedDict):
    kind: str
    message: str
    is_retryable: NotRequired[bool]
    reference: NotRequired[str | None]
    usage: NotRequired[dict[str, Any] | None]


class TurnStopped(TypedDict):
    reason: str
    usage: NotRequired[dict[str, Any] | None]


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
    usage: dict[str, Any]
    finish: NotRequired[str | None]


class ResponseDropped(TypedDict):
    reason: NotRequired[str]
    dropped: Annotated[list[str], Field(description="parts that readers discard")]
    retry_in: NotRequired[Annotated[float | None, Field(description="seconds")]]


class HistoryCompacted(TypedDict):
    """What the model is sent of the history was shortened; what is stored is not."""

    messages: int
    results_cut: int
    characters_before: int
    characters_after: int
    reason: Annotated[
        str, Field(description="window, refused_as_too_long, summarised, left_out: no summary could be made")
    ]
    summary: NotRequired[Annotated[str, Field(description="what the model is sent in place of the oldest messages")]]
    up_to: NotRequired[Annotated[int, Field(description="the position of the last of them in history")]]
