"""The catalogue of event types. Adding one means adding it here: tests enumerate this list."""

from collections.abc import Mapping
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
    HISTORY_COMPACTED = "history.compacted"
    TASK_CREATED = "task.created"
    TASK_CHANGED = "task.changed"
    TASK_ENDED = "task.ended"
    STREAM_LAGGED = "stream.lagged"
    STREAM_EXPIRED = "stream.expired"


TERMINAL = frozenset({EventType.TURN_COMPLETED, EventType.TURN_FAILED, EventType.TURN_STOPPED})
"""The ends of a turn: exactly one of them stands in the log for each turn that ended."""

FED = frozenset(each for each in EventType if each.partition(".")[0] in ("session", "input", "turn", "task"))
"""Changes of state: these also stand in their owner's feed."""

CONTROL = frozenset({EventType.STREAM_LAGGED, EventType.STREAM_EXPIRED})
"""Said to one reader only: never stored, no number."""

FIELDS: Mapping[EventType, str] = {
    EventType.SESSION_CREATED: (
        "agent, title, external_id, forked_from or imported_from (a session's id), is_dry_run (if it is one)"
    ),
    EventType.SESSION_CHANGED: (
        "what has changed of title, metadata, model, is_archived, read_to (with is_unread), permissions, is_dry_run"
    ),
    EventType.SESSION_HELD: "reason",
    EventType.SESSION_RESUMED: "",
    EventType.SESSION_FLAGGED: "reason, woken_turns",
    EventType.SESSION_DELETED: "nothing; it is the last event that anybody gets of the session",
    EventType.INPUT_ACCEPTED: "input_id, kind, mode, text",
    EventType.INPUT_EDITED: "input_id, text",
    EventType.INPUT_REMOVED: "input_id",
    EventType.INPUT_DELIVERED: "input_id, kind, text, message (its position in history), key (idempotency key, if any)",
    EventType.TURN_QUEUED: (
        "origin, place (of those that wait, if it waits), until (if the daily limit is reached), "
        "regenerates (the turn whose answer it replaces)"
    ),
    EventType.TURN_STARTED: "attempt, worker_id, model",
    EventType.TURN_RESUMED: "attempt, worker_id, dropped (parts that readers discard)",
    EventType.TURN_COMPLETED: (
        "output, output_type (which, if the agent declares several), output_fields (the same by the names of its "
        "fields, if the object cannot be read back from the output), text (only a closing line that the runtime "
        "added), usage"
    ),
    EventType.TURN_FAILED: "kind, message, is_retryable, reference, usage",
    EventType.TURN_STOPPED: "reason, usage",
    EventType.PART_STARTED: "part, kind (text, reasoning, call, file), call_id, tool",
    EventType.PART_DELTA: "part, offset (in characters), text; first and marks after a fold",
    EventType.PART_ENDED: "part, length",
    EventType.RESPONSE_COMPLETED: "message, model, usage, finish",
    EventType.RESPONSE_DROPPED: "reason, dropped (parts that readers discard), retry_in",
    EventType.CALL_STARTED: "call_id, tool, args",
    EventType.CALL_WAITING: "call_id, tool, reason (why the turn waits for it past its budget)",
    EventType.CALL_PROGRESS: "call_id, progress",
    EventType.CALL_ENDED: (
        "call_id, tool, outcome (success, failed, retried, interrupted; parked if it goes on in the background), "
        "part (what the model is given), content and artifacts (files), task_id if it goes on as a task, "
        "usage (of agents that its tool ran, if it did)"
    ),
    EventType.HISTORY_COMPACTED: "messages, results_cut, characters_before, characters_after, reason",
    EventType.TASK_CREATED: "task",
    EventType.TASK_CHANGED: "task",
    EventType.TASK_ENDED: "task",
    EventType.STREAM_LAGGED: "position (to resume from), behind",
    EventType.STREAM_EXPIRED: "first (number that is kept), snapshot",
}
"""What `data` holds, by type; the events reference is made from this."""
