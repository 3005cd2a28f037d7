"""Which TypedDict describes `data`, by the type of event.

From these the checks of stored events, the events reference and the schemas of the HTTP API are made.
"""

from collections.abc import Mapping
from typing import Any

from outlast.events.data.calls import CallEnded, CallProgress, CallSettled, CallStarted, CallWaiting
from outlast.events.data.conversation import (
    InputAccepted,
    InputDelivered,
    InputEdited,
    InputRemoved,
    SessionChanged,
    SessionCreated,
    SessionDeleted,
    SessionFlagged,
    SessionHeld,
    SessionResumed,
)
from outlast.events.data.schedules import ScheduleDeleted, ScheduleFired, ScheduleTold
from outlast.events.data.streams import StreamExpired, StreamLagged, StreamLive, StreamOpened
from outlast.events.data.tasks import RequestClosed, RequestOpened, TaskOutput, TaskTold
from outlast.events.data.turns import (
    HistoryCompacted,
    PartDelta,
    PartEnded,
    PartStarted,
    ResponseCompleted,
    ResponseDropped,
    TurnCompleted,
    TurnFailed,
    TurnQueued,
    TurnResumed,
    TurnStarted,
    TurnStopped,
)
from outlast.events.types import EventType

DATA: Mapping[EventType, type[Any]] = {
    EventType.SESSION_CREATED: SessionCreated,
    EventType.SESSION_CHANGED: SessionChanged,
    EventType.SESSION_HELD: SessionHeld,
    EventType.SESSION_RESUMED: SessionResumed,
    EventType.SESSION_FLAGGED: SessionFlagged,
    EventType.SESSION_DELETED: SessionDeleted,
    EventType.INPUT_ACCEPTED: InputAccepted,
    EventType.INPUT_EDITED: InputEdited,
    EventType.INPUT_REMOVED: InputRemoved,
    EventType.INPUT_DELIVERED: InputDelivered,
    EventType.TURN_QUEUED: TurnQueued,
    EventType.TURN_STARTED: TurnStarted,
    EventType.TURN_RESUMED: TurnResumed,
    EventType.TURN_COMPLETED: TurnCompleted,
    EventType.TURN_FAILED: TurnFailed,
    EventType.TURN_STOPPED: TurnStopped,
    EventType.PART_STARTED: PartStarted,
    EventType.PART_DELTA: PartDelta,
    EventType.PART_ENDED: PartEnded,
    EventType.RESPONSE_COMPLETED: ResponseCompleted,
    EventType.RESPONSE_DROPPED: ResponseDropped,
    EventType.CALL_STARTED: CallStarted,
    EventType.CALL_WAITING: CallWaiting,
    EventType.CALL_PROGRESS: CallProgress,
    EventType.CALL_ENDED: CallEnded,
    EventType.CALL_SETTLED: CallSettled,
    EventType.HISTORY_COMPACTED: HistoryCompacted,
    EventType.TASK_CREATED: TaskTold,
    EventType.TASK_CHANGED: TaskTold,
    EventType.TASK_ENDED: TaskTold,
    EventType.REQUEST_OPENED: RequestOpened,
    EventType.REQUEST_CLOSED: RequestClosed,
    EventType.STREAM_OPENED: StreamOpened,
    EventType.STREAM_LIVE: StreamLive,
    EventType.SCHEDULE_CREATED: ScheduleTold,
    EventType.SCHEDULE_CHANGED: ScheduleTold,
    EventType.SCHEDULE_PAUSED: ScheduleTold,
    EventType.SCHEDULE_FIRED: ScheduleFired,
    EventType.SCHEDULE_SKIPPED: ScheduleFired,
    EventType.SCHEDULE_DELETED: ScheduleDeleted,
    EventType.STREAM_LAGGED: StreamLagged,
    EventType.STREAM_EXPIRED: StreamExpired,
    EventType.TASK_OUTPUT: TaskOutput,
}
"""Adding a type means adding it here: tests enumerate."""
