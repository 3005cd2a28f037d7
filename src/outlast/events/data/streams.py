"""What `data` holds in events of streams, which are not stored."""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict


class StreamOpened(TypedDict):
    """The first of a feed's stream."""

    cursor: Annotated[str, Field(description="where it begins")]
    now: Annotated[str, Field(description="the server's clock")]
    version: Annotated[str, Field(description="the server's")]
    heartbeat_seconds: float
    outputs: Annotated[dict[str, int], Field(description="where each output begins, by task")]


class StreamLive(TypedDict):
    """All that was there has been told: what follows is told as it happens."""


class StreamLagged(TypedDict):
    position: Annotated[int, Field(description="to resume from")]
    behind: int


class StreamExpired(TypedDict):
    first: Annotated[int | None, Field(description="number that is kept")]
    snapshot: Annotated[
        dict[str, Any] | None,
        Field(description="what is there now, and removed_at and setting: when what came before was removed, and why"),
    ]
