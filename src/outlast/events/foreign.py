"""What others wrote in the data of each type of event, and of what events tell of: the rest is never masked."""

from collections.abc import Mapping
from typing import Any

from outlast.events.types import EventType
from outlast.values.foreign import Place, anything, fields, message, schema, values
from outlast.values.secrets import Secrets

ERROR = fields(message=anything)
PROGRESS = fields(unit=anything, label=anything)
ARTIFACTS = fields(name=anything, media_type=anything)
_CLOSED: Mapping[str, Place] = {"by": anything, "value": anything, "args": anything, "reason": anything}
_REQUEST: Mapping[str, Place] = {
    **{"prompt": anything, "schema": schema, "url": anything, "args": anything, "metadata": anything},
    "closed": fields(**_CLOSED),
}
REQUEST = fields(**_REQUEST)
OF_A_TASK: Mapping[str, Place] = {
    "title": anything,
    "spec": fields(args=anything, answers=anything, narration=anything),
    "detail": anything,
    "progress": PROGRESS,
    "request": REQUEST,
    "result": anything,
    "error": ERROR,
    "late_outcome": fields(result=anything, error=ERROR),
    "artifacts": ARTIFACTS,
    "metadata": anything,
    "settled": fields(by=anything, note=anything),
}
BODY_OF_AN_INPUT = fields(
    by=anything,
    context=fields(content=anything, url=anything),
    files=fields(name=anything),
    title=anything,
    content=message,
    schedule=fields(notice=anything),
)
_TOLD: Mapping[str, Place] = {
    **OF_A_TASK,
    **{"args": anything, "narration": anything, "result_preview": anything, "last_line": anything},
    "late_outcome": fields(result_preview=anything, error=ERROR),
}
_TASK: Mapping[str, Place] = {"task": fields(**_TOLD)}
_SCHEDULE: Mapping[str, Place] = {"schedule": fields(title=anything, text=anything, made_by=anything)}
_FIRE: Mapping[str, Place] = {"title": anything, "detail": anything}
_TEXT: Mapping[str, Place] = {"text": anything}
_INPUT: Mapping[str, Place] = {"text": anything, "by": anything, "files": fields(name=anything)}
_NOTHING: Mapping[str, Place] = {}

FOREIGN: Mapping[EventType, Mapping[str, Place]] = {
    EventType.SESSION_CREATED: {"title": anything},
    EventType.SESSION_CHANGED: {"title": anything, "metadata": anything, "permissions": anything},
    EventType.SESSION_HELD: _NOTHING,
    EventType.SESSION_RESUMED: _NOTHING,
    EventType.SESSION_FLAGGED: _NOTHING,
    EventType.SESSION_DELETED: _NOTHING,
    EventType.INPUT_ACCEPTED: _INPUT,
    EventType.INPUT_EDITED: _TEXT,
    EventType.INPUT_REMOVED: _NOTHING,
    EventType.INPUT_DELIVERED: _INPUT,
    EventType.TURN_QUEUED: _NOTHING,
    EventType.TURN_STARTED: _NOTHING,
    EventType.TURN_RESUMED: _NOTHING,
    EventType.TURN_COMPLETED: {"output": anything, "text": anything},
    EventType.TURN_FAILED: {"message": anything},
    EventType.TURN_STOPPED: _NOTHING,
    EventType.PART_STARTED: _NOTHING,
    EventType.PART_DELTA: _TEXT,
    EventType.PART_ENDED: _NOTHING,
    EventType.RESPONSE_COMPLETED: _NOTHING,
    EventType.RESPONSE_DROPPED: _NOTHING,
    EventType.CALL_STARTED: {"args": anything, "narration": anything},
    EventType.CALL_WAITING: {"reason": anything},
    EventType.CALL_PROGRESS: {"progress": PROGRESS},
    EventType.CALL_ENDED: {"part": message, "content": message, "artifacts": ARTIFACTS, "narration": anything},
    EventType.CALL_SETTLED: {"by": anything, "note": anything},
    EventType.HISTORY_COMPACTED: _NOTHING,
    EventType.TASK_CREATED: _TASK,
    EventType.TASK_CHANGED: _TASK,
    EventType.TASK_ENDED: _TASK,
    EventType.REQUEST_OPENED: {"request": REQUEST, "title": anything},
    EventType.REQUEST_CLOSED: _CLOSED,
    EventType.STREAM_OPENED: _NOTHING,
    EventType.STREAM_LIVE: _NOTHING,
    EventType.SCHEDULE_CREATED: _SCHEDULE,
    EventType.SCHEDULE_CHANGED: _SCHEDULE,
    EventType.SCHEDULE_PAUSED: _SCHEDULE,
    EventType.SCHEDULE_FIRED: _FIRE,
    EventType.SCHEDULE_SKIPPED: _FIRE,
    EventType.SCHEDULE_DELETED: _NOTHING,
    EventType.STREAM_LAGGED: _NOTHING,
    EventType.STREAM_EXPIRED: {"snapshot": fields(title=anything, inbox=fields(text=anything))},
    EventType.TASK_OUTPUT: _TEXT,
}
_PLACES: Mapping[str, Place] = {type_.value: fields(**places) for type_, places in FOREIGN.items()}


def masked(type_: str, data: dict[str, Any], secrets: Secrets) -> dict[str, Any]:
    """The data of an event without registered values: the same object where it has none.

    Of a type that is not known here, all texts are masked.
    """
    return data if secrets.is_empty else _PLACES.get(type_, values)(secrets, data)
