"""Calls that wait for a connection: those of an owner and a provider, and those whose connection is there."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from outlast.store.repositories import connections
from outlast.store.repositories.stored_task import Task, from_row
from outlast.store.repositories.tasks import THERE
from outlast.store.tables import tasks
from outlast.wire.task_state import TaskState

_SOME = 500
_WAITING = (
    sa.select(tasks)
    .where(
        tasks.c.state == TaskState.AWAITING_INPUT.value,
        tasks.c.ended_at.is_(None),
        tasks.c.request.like('%"connection"%'),
        THERE,
    )
    .order_by(tasks.c.created_at, tasks.c.id)
)


def of_provider(connection: sa.Connection, owner_id: str, provider: str) -> Sequence[Task]:
    return [each for each in _read(connection, _WAITING.where(tasks.c.owner_id == owner_id)) if _for(each) == provider]


def connected(connection: sa.Connection) -> Sequence[Task]:
    """Of all owners: those whose connection was set since they looked for it, and which nobody has run."""
    found = list[Task]()
    for each in _read(connection, _WAITING.limit(_SOME)):
        provider = _for(each)
        row = None if provider is None else connections.find(connection, each.owner_id, provider)
        if row is not None and row.updated_at.isoformat() != _request(each).get("seen_at"):
            found.append(each)
    return found


def _read(connection: sa.Connection, query: sa.Select[Any]) -> Sequence[Task]:
    return [from_row(row) for row in connection.execute(query).mappings()]


def _request(task: Task) -> Mapping[str, Any]:
    return task.request or {}


def _for(task: Task) -> str | None:
    request = _request(task)
    return request.get("provider") if request.get("kind") == "connection" and "closed" not in request else None
