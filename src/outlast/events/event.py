"""An event: an immutable, numbered fact in a session's log."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from outlast.events.types import CONTROL, TERMINAL, EventType
from outlast.ids import SessionId, TaskId, TurnId

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Draft:
    """An event before its number: what happened, not yet where it stands."""

    type: EventType
    data: JsonObject = field(default_factory=dict[str, Any])
    turn_id: TurnId | None = None
    task_id: TaskId | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A fact with its number. Numbers rise strictly within a session; they need not be consecutive.

    `type` is a plain string, so that a reader keeps working when it meets a type it does not know.
    `number` is None only for what is said to one reader: `stream.*`, and `session.deleted` once the log is gone.
    """

    session_id: SessionId
    number: int | None
    type: str
    at: datetime
    data: JsonObject
    turn_id: TurnId | None = None
    task_id: TaskId | None = None

    @property
    def is_terminal(self) -> bool:
        return self.type in TERMINAL

    @property
    def is_control(self) -> bool:
        return self.type in CONTROL
