"""Events on the wire. For readers of the OpenAPI document they are a union by `type`, made from `events/data/`."""

from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal, Self, Union

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, JsonValue, TypeAdapter, create_model
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from outlast.events.data.by_type import DATA
from outlast.events.types import EventType
from outlast.events.views.blocks import previewed
from outlast.wire.forms import SESSION_ID, TURN_ID, Answer

_OF_NO_SESSION = (EventType.STREAM_OPENED, EventType.STREAM_LIVE, EventType.STREAM_LAGGED)
"""They may tell of the stream itself."""


class _Envelope(BaseModel):
    """A fact in the log. `number` is null only for what is said to one reader (`stream.*`)."""

    number: int | None
    at: datetime
    session_id: str
    turn_id: str | None
    task_id: str | None


class EventAnswer(Answer):
    """A fact in the log. `number` is null only for what is said to one reader (`stream.*`).

    A server may be newer than its client: types and fields that a reader does not know are passed over.
    """

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
    def of(cls, thing: object) -> Self:
        """With previews in place of what lies in the file store."""
        made = super().of(thing)
        made.data = previewed(made.data)
        return made

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Described by what each type holds; sent as it is, so that no type is lost on the way."""
        described = handler.resolve_ref_schema(handler(core_schema))
        kept = {name: described[name] for name in ("title", "description", "examples") if name in described}
        union = handler(_union())
        described.clear()
        described.update(union | kept)
        return described


@cache
def _union() -> CoreSchema:
    """The types of events as models that differ by `type`."""
    models: Any = tuple(_model(type_) for type_ in EventType)
    union: Any = Annotated[Union[models], Field(discriminator="type")]  # noqa: UP007 # pyright: ignore
    return TypeAdapter[Any](union).core_schema


def _model(type_: EventType) -> Any:
    name = "".join(each.capitalize() for each in type_.value.split(".")) + "Event"
    fields: dict[str, Any] = {"type": (Literal[type_.value], ...), "data": (DATA[type_], ...)}
    if type_ in _OF_NO_SESSION:
        fields["session_id"] = (str | None, ...)
    return create_model(name, __base__=_Envelope, __doc__=DATA[type_].__doc__ or f"`{type_.value}`", **fields)


class EventPage(BaseModel):
    """Events after a position. Ask again with `after=next`; `next` stands where this page ends."""

    items: list[EventAnswer]
    next: int


class FeedPage(BaseModel):
    """Events over all sessions. Ask again with `after=next`."""

    items: list[EventAnswer]
    next: str
