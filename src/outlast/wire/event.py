"""Events on the wire."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, JsonValue

from outlast.wire.forms import SESSION_ID, TURN_ID, Answer


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


class EventPage(BaseModel):
    """Events after a position. Ask again with `after=next`; `next` stands where this page ends."""

    items: list[EventAnswer]
    next: int


class FeedPage(BaseModel):
    """Events over all sessions. Ask again with `after=next`."""

    items: list[EventAnswer]
    next: str
