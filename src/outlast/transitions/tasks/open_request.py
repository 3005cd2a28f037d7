"""What a task asks somebody for, while nobody has answered: opened and closed once each, and told both times.

Every function runs inside a transaction that holds the lock of the task's session.
"""

from collections.abc import Mapping
from typing import Any, Literal

from outlast.errors import Conflict
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.store.repositories import tasks
from outlast.store.repositories.stored_task import Task
from outlast.store.unit import Unit
from outlast.transitions.task_errors import NOT_ANSWERED

How = Literal["answered", "approved", "refused", "withdrawn", "expired", "ended"]
"""`withdrawn`: its tool no longer waits for it. `ended`: its task ended for another reason."""

_WORDS: Mapping[str, str] = {
    "answered": "It was already answered by {by}.",
    "approved": "It was already approved by {by}.",
    "refused": "It was already refused by {by}.",
    "withdrawn": "Its tool no longer waits for an answer.",
    "expired": "Nobody answered before its deadline, and its task has ended.",
    "ended": "Its task has ended: {reason}",
}


def is_open(task: Task) -> bool:
    return task.request is not None and "closed" not in task.request


def tell_opened(unit: Unit, task: Task) -> None:
    """Somebody is needed: the log, the owner's feed, and the session is unread."""
    told = {"request": task.request, "tool": task.tool, "title": task.title}
    number = unit.append(task.session_id, [Draft(EventType.REQUEST_OPENED, told, task.turn_id, task.id)])
    unit.lock(task.session_id).set(answered_event=number)


def close(
    unit: Unit, task: Task, how: How, *, by: str | None = None, told: Mapping[str, Any] | None = None, **facts: Any
) -> dict[str, Any]:
    """Write and tell who closed it, how and when; gives the request as it is then. `told`: what the log alone says."""
    assert task.request is not None
    closed = {"how": how, "by": by, "at": unit.now.isoformat(), **facts}
    request = {**task.request, "closed": closed}
    tasks.set_values(unit, task.id, request=tasks.encode(request))
    data = {"request_id": request["id"], "kind": request["kind"], **(told or {}), **closed}
    unit.append(task.session_id, [Draft(EventType.REQUEST_CLOSED, data, task.turn_id, task.id)])
    return request


def close_at_end(unit: Unit, ended: Task) -> dict[str, Any]:
    """Its task has ended without an answer."""
    error = ended.error or {}
    if error == NOT_ANSWERED:
        return close(unit, ended, "expired")
    return close(unit, ended, "ended", reason=error.get("message") or f"it was {ended.state.value}.")


def check_open(task: Task) -> dict[str, Any]:
    """The request, if it can still be answered; else `Conflict` with who closed it, or why."""
    if task.request is None:
        raise Conflict(f"The task is {task.state.value} and asks for nothing.", state=task.state.value)
    closed = task.request.get("closed")
    if closed is not None:
        words = _WORDS[closed["how"]].format(by=closed.get("by"), reason=closed.get("reason", ""))
        raise Conflict(words.strip(), how=closed["how"], by=closed.get("by"), at=closed["at"])
    return task.request
