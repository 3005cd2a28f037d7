"""The catalogue of event types. Adding one means adding it here, and its data in `events/data/`."""

from enum import StrEnum


class EventType(StrEnum):
    SESSION_CREATED = "session.created"
    SESSION_CHANGED = "session.changed"
    SESSION_HELD = "session.held"
    SESSION_RESUMED = "session.resumed"
    SESSION_FLAGGED = "session.flagged"
    SESSION_DELETED = "session.deleted"
    INPUT_ACCEPTED = "input.accepted"
    INPUT_EDITED = "input.edited"
    INPUT_REMOVED = "input.removed"
    INPUT_DELIVERED = "input.delivered"
    TURN_QUEUED = "turn.queued"
    TURN_STARTED = "turn.started"
    TURN_RESUMED = "turn.resumed"
    TURN_COMPLETED = "turn.completed"
    TURN_FAILED = "turn.failed"
    TURN_STOPPED = "turn.stopped"
    PART_STARTED = "part.started"
    PART_DELTA = "part.delta"
    PART_ENDED = "part.ended"
    RESPONSE_COMPLETED = "response.completed"
    RESPONSE_DROPPED = "response.dropped"
    CALL_STARTED = "call.started"
    CALL_WAITING = "call.waiting"
    CALL_PROGRESS = "call.progress"
    CALL_ENDED = "call.ended"
    CALL_SETTLED = "call.settled"
    HISTORY_COMPACTED = "history.compacted"
    TASK_CREATED = "task.created"
    TASK_CHANGED = "task.changed"
    TASK_ENDED = "task.ended"
    REQUEST_OPENED = "request.opened"
    REQUEST_CLOSED = "request.closed"
    STREAM_OPENED = "stream.opened"
    STREAM_LIVE = "stream.live"
    SCHEDULE_CREATED = "schedule.created"
    SCHEDULE_CHANGED = "schedule.changed"
    SCHEDULE_PAUSED = "schedule.paused"
    SCHEDULE_FIRED = "schedule.fired"
    SCHEDULE_SKIPPED = "schedule.skipped"
    SCHEDULE_DELETED = "schedule.deleted"
    STREAM_LAGGED = "stream.lagged"
    STREAM_EXPIRED = "stream.expired"
    TASK_OUTPUT = "task.output"


TERMINAL = frozenset({EventType.TURN_COMPLETED, EventType.TURN_FAILED, EventType.TURN_STOPPED})
"""The ends of a turn: exactly one of them stands in the log for each turn that ended."""

CONTROL = frozenset(
    {
        EventType.STREAM_OPENED,
        EventType.STREAM_LIVE,
        EventType.STREAM_LAGGED,
        EventType.STREAM_EXPIRED,
        EventType.TASK_OUTPUT,
    }
)
"""Said to one reader only: never stored, no number."""

_FED = ("session", "input", "turn", "task", "request", "schedule")
FED = frozenset(each for each in EventType if each.partition(".")[0] in _FED) - CONTROL
"""Changes of state: these also stand in their owner's feed."""
