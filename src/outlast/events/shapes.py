"""What every reader takes for granted in an event's data, by its type."""

from collections.abc import Mapping
from typing import Any

from outlast.events.types import EventType
from outlast.values.shape import Shape, fits, list_of, maybe, number, object_of, pair, text, whole

_ANY = object_of()
_CALL: Shape = {"call_id": text, "tool": text}
_INPUT: Shape = {"input_id": text, "kind": text, "text": text}
_BEGUN: Shape = {"attempt": whole, "dropped": maybe(list_of(text))}
_TASK: Shape = {
    "task": object_of({"id": text, "title": text, "state": text, "error": maybe(_ANY), "usage": maybe(_ANY)})
}
_USED: Shape = {"usage": maybe(_ANY)}

_SHAPES: Mapping[str, Shape] = {
    EventType.INPUT_ACCEPTED: _INPUT,
    EventType.INPUT_EDITED: {"input_id": text, "text": text},
    EventType.INPUT_REMOVED: {"input_id": text},
    EventType.INPUT_DELIVERED: _INPUT,
    EventType.TURN_STARTED: _BEGUN,
    EventType.TURN_RESUMED: _BEGUN,
    EventType.TURN_COMPLETED: {"text": maybe(text), "output_type": maybe(text), **_USED},
    EventType.TURN_FAILED: {"kind": text, "message": text, **_USED},
    EventType.TURN_STOPPED: {"reason": text, **_USED},
    EventType.PART_STARTED: {"part": text, "kind": text, "call_id": maybe(text), "tool": maybe(text)},
    EventType.PART_DELTA: {
        **{"part": text, "offset": whole, "text": text},
        **{"first": maybe(whole), "marks": maybe(list_of(pair))},
    },
    EventType.PART_ENDED: {"part": text},
    EventType.RESPONSE_COMPLETED: {"usage": _ANY, "finish": maybe(text), "model": maybe(text)},
    EventType.RESPONSE_DROPPED: {"dropped": list_of(text), "retry_in": maybe(number)},
    EventType.CALL_STARTED: _CALL,
    EventType.CALL_WAITING: {**_CALL, "reason": text},
    EventType.CALL_PROGRESS: {"call_id": text, "progress": maybe(_ANY)},
    EventType.CALL_ENDED: {**_CALL, "outcome": text, "part": _ANY, **_USED},
    EventType.TASK_CREATED: _TASK,
    EventType.TASK_CHANGED: _TASK,
    EventType.TASK_ENDED: _TASK,
}


def is_as_told(type_: str, data: Mapping[str, Any]) -> bool:
    """Whether it holds what its type promises. Of a type that nobody knows nothing is promised."""
    shape = _SHAPES.get(type_)
    if shape is None or not fits(data, shape):
        return shape is None
    if type_ == EventType.PART_STARTED and data["kind"] == "call":
        return fits(data, _CALL)
    return data.get("first") is None or type_ != EventType.PART_DELTA or data.get("marks") is not None
