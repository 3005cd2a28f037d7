"""What events tell of a task: all that a card of it shows, and none of its bodies."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from outlast.values.digest import digest, object_of, preview
from outlast.wire.task_state import TaskState

if TYPE_CHECKING:
    from outlast.store.repositories.stored_task import Task

_LONGEST = 300
"""Characters of a preview of a result."""


def of(task: "Task") -> dict[str, Any]:
    """What may change back to nothing is told as null; what only comes once is left out until it is there."""
    once: dict[str, Any] = {
        "args": digest(object_of(task.spec.get("args"))),
        "narration": task.narration,
        "group": task.group,
        "deadline_at": _said(task.deadline_at),
        "ended_at": _said(task.ended_at),
        "result_preview": preview(task.result, _LONGEST),
        "late_outcome": _late(task.late_outcome),
        "output_size": task.output_size,
        "last_line": task.last_line,
        "usage": task.usage,
        "place": task.place,
        "request": task.request,
    }
    return {
        "id": task.id,
        "kind": task.kind,
        "origin": task.origin.value,
        "agent": task.agent,
        "tool": task.tool,
        "call_id": task.call_id,
        "title": task.title,
        "state": task.state.value,
        "detail": task.detail,
        "progress": task.progress,
        "error": task.error,
        "artifacts": task.artifacts,
        "attempt": task.attempt,
        "worker_id": task.worker_id,
        "wake": task.wake.value,
        "is_cancel_requested": task.cancel_requested_at is not None,
        "needs": task.needs,
        "settled": task.settled,
        "links": task.links,
        "parked": task.parked,
        "created_at": task.created_at.isoformat(),
        "started_at": _said(task.started_at),
        "ran_seconds": task.ran_seconds,
        **{name: value for name, value in once.items() if value is not None},
    }


def _late(outcome: dict[str, Any] | None) -> dict[str, Any] | None:
    """What it came to after its end had been told. That its code heeded its cancel is no news: no event tells of it."""
    if outcome is None or outcome.get("state") == TaskState.CANCELED:
        return None
    error = cast(dict[str, Any] | None, outcome.get("error"))
    told = {"state": outcome.get("state"), "error": error, "result_preview": preview(outcome.get("result"), _LONGEST)}
    return {name: value for name, value in told.items() if value is not None}


def _said(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
