"""Work that a session has given to a sub-session: it runs there, and no worker has it."""

from datetime import datetime
from typing import Any

from outlast.limits import Limits
from outlast.store.repositories.stored_task import Task
from outlast.transitions.kinds.kind import Kind


def _verdict(task: Task, now: datetime, limits: Limits) -> dict[str, Any] | None:
    """No worker has it that could die."""
    return None


SESSION = Kind("session", _verdict, needs_worker=False)
