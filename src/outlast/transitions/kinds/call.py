"""A call of a tool, parked or started by itself: run again after a death only if its tool says that it may be."""

from datetime import datetime
from typing import Any

from outlast.limits import Limits
from outlast.store.repositories.stored_task import Task
from outlast.transitions.kinds.kind import Kind
from outlast.transitions.task_errors import CRASH_LOOP, INTERRUPTED, TIMED_OUT


def _verdict(task: Task, now: datetime, limits: Limits) -> dict[str, Any] | None:
    """Without its tool's word nobody knows whether it has taken effect, and that is told."""
    if task.deadline_at is not None and task.deadline_at <= now:
        return TIMED_OUT
    if task.cancel_requested_at is not None or not task.may_run_again:
        return INTERRUPTED
    return CRASH_LOOP if task.attempt >= (task.max_attempts or limits.max_claims) else None


CALL = Kind("call", _verdict)
