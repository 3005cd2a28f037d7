"""Outlast: a runtime for AI agents whose work takes longer than a request."""

from outlast.calls.call import artifact, idempotency_key, output, progress, secret
from outlast.errors import OutlastError
from outlast.events.event import Event
from outlast.events.outcome import Outcome
from outlast.runtime import Outlast
from outlast.sessions.attachments import Attachment, Context
from outlast.sessions.host import TurnContext
from outlast.sessions.session import Session
from outlast.sessions.settlement import Verdict
from outlast.sessions.turn_handle import Sent, Turn
from outlast.settings import Settings
from outlast.store.tasks import Task
from outlast.tools.hints import hints

__version__ = "0.1.0"

__all__ = [
    "Attachment",
    "Context",
    "Event",
    "Outcome",
    "Outlast",
    "OutlastError",
    "Sent",
    "Session",
    "Settings",
    "Task",
    "Turn",
    "TurnContext",
    "Verdict",
    "artifact",
    "hints",
    "idempotency_key",
    "output",
    "progress",
    "secret",
]
