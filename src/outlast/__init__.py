"""Outlast: a runtime for AI agents whose work takes longer than a request."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outlast.agents.host import TurnContext
    from outlast.agents.resource import BoundResource
    from outlast.calls.call import artifact, cost, idempotency_key, output, progress, secret
    from outlast.calls.within.ask import ask, ask_sync
    from outlast.calls.within.connection import connection, connection_sync
    from outlast.calls.within.external import external
    from outlast.calls.within.session_files import files
    from outlast.client.client import Client
    from outlast.errors import OutlastError
    from outlast.events.event import Event
    from outlast.events.outcome import Outcome
    from outlast.handles.session import Session
    from outlast.handles.turn import Sent, Turn
    from outlast.runtime import Outlast
    from outlast.settings import Settings
    from outlast.tool_hints import hints
    from outlast.wire.attachment import Attachment, Context
    from outlast.wire.constraints import Binding, Permissions
    from outlast.wire.schedule import Schedule
    from outlast.wire.task import Task
    from outlast.wire.turn import Verdict

__version__ = "0.1.0"

__all__ = [
    "Attachment",
    "Binding",
    "BoundResource",
    "Client",
    "Context",
    "Event",
    "Outcome",
    "Outlast",
    "OutlastError",
    "Permissions",
    "Schedule",
    "Sent",
    "Session",
    "Settings",
    "Task",
    "Turn",
    "TurnContext",
    "Verdict",
    "artifact",
    "ask",
    "ask_sync",
    "connection",
    "connection_sync",
    "cost",
    "external",
    "files",
    "hints",
    "idempotency_key",
    "output",
    "progress",
    "secret",
]

_HOMES = {
    "Attachment": "wire.attachment",
    "Binding": "wire.constraints",
    "BoundResource": "agents.resource",
    "Client": "client.client",
    "Context": "wire.attachment",
    "Event": "events.event",
    "Outcome": "events.outcome",
    "Outlast": "runtime",
    "OutlastError": "errors",
    "Permissions": "wire.constraints",
    "Schedule": "wire.schedule",
    "Sent": "handles.turn",
    "Session": "handles.session",
    "Settings": "settings",
    "Task": "wire.task",
    "Turn": "handles.turn",
    "TurnContext": "agents.host",
    "Verdict": "wire.turn",
    "artifact": "calls.call",
    "ask": "calls.within.ask",
    "ask_sync": "calls.within.ask",
    "connection": "calls.within.connection",
    "connection_sync": "calls.within.connection",
    "cost": "calls.call",
    "external": "calls.within.external",
    "files": "calls.within.session_files",
    "hints": "tool_hints",
    "idempotency_key": "calls.call",
    "output": "calls.call",
    "progress": "calls.call",
    "secret": "calls.call",
}
"""Names are loaded when they are asked for: a client, or a command that asks a server, needs no runtime."""

if not TYPE_CHECKING:  # else every misspelt name would have a type

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *_HOMES})
