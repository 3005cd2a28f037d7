"""Spawned tasks: how many have a place among those that may run, and which of those that wait is next."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import sqlalchemy as sa

from outlast.ids import SessionId, TaskId
from outlast.store.repositories.stored_task import Task, TaskOrigin, from_row
from outlast.store.repositories.tasks import THERE
from outlast.store.sql.statement import Statement
from outlast.store.tables import tasks
from outlast.store.unit import Unit
from outlast.wire.task_state import TaskState

_OPEN = (tasks.c.origin == TaskOrigin.SPAWN.value, tasks.c.ended_at.is_(None))
_RUNNING = sa.or_(tasks.c.state == TaskState.QUEUED.value, tasks.c.state == TaskState.RUNNING.value)
_HAVE_PLACE = (*_OPEN, tasks.c.admitted_at.is_not(None), _RUNNING)
"""What waits for a person has none, and what a worker gave back keeps its own."""
_WAITING = (*_OPEN, tasks.c.admitted_at.is_(None), tasks.c.state == TaskState.QUEUED.value)
_OWNERS = tasks.c.owner_id == sa.bindparam("owner")
_COUNT = Statement(sa.select(sa.func.count()).select_from(tasks).where(_OWNERS, *_HAVE_PLACE, THERE))
_FULL = (
    sa.select(tasks.c.session_id)
    .where(_OWNERS, *_HAVE_PLACE)
    .group_by(tasks.c.session_id)
    .having(sa.func.count() >= sa.bindparam("per_session"))
    .correlate(None)
)
# A row that somebody holds is being cancelled or expires: it waits no longer.
_NEXT = Statement(
    sa.select(tasks)
    .where(_OWNERS, *_WAITING, tasks.c.session_id.not_in(_FULL), THERE)
    .order_by(tasks.c.created_at, tasks.c.id)
    .limit(1)
    .with_for_update(skip_locked=True, of=tasks)
)
_ADMIT = Statement(
    sa.update(tasks)
    .where(tasks.c.id == sa.bindparam("key"), tasks.c.admitted_at.is_(None))
    .values(admitted_at=sa.bindparam("at"))
)
_PLACES = sa.select(
    tasks.c.id,
    sa.func.row_number()
    .over(partition_by=tasks.c.session_id, order_by=(tasks.c.created_at, tasks.c.id))
    .label("place"),
).where(*_WAITING)


def count(connection: sa.Connection, owner_id: str) -> int:
    """How many of an owner's have a place: they run, or are handed to the engine."""
    return _COUNT.scalar(connection, owner=owner_id)


def next_to_admit(connection: sa.Connection, owner_id: str, *, per_session: int) -> Task | None:
    """The first that waits in a session that has fewer than so many."""
    row = _NEXT.first(connection, owner=owner_id, per_session=per_session)
    return None if row is None else from_row(row)


def admit(unit: Unit, task: Task) -> None:
    _ADMIT.run(unit.connection, key=task.id, at=unit.now_us)


def places(connection: sa.Connection, session_ids: Collection[SessionId]) -> dict[TaskId, int]:
    """The numbers, from 1 on, of those that wait in these sessions."""
    found = connection.execute(_PLACES.where(tasks.c.session_id.in_(session_ids)))
    return {TaskId(row.id): row.place for row in found}


def with_places(connection: sa.Connection, found: Sequence[Task]) -> list[Task]:
    """Those that wait for a place say which number they have."""
    waiting = {each.session_id for each in found if each.waits_for_place}
    numbers = places(connection, waiting) if waiting else {}
    return [replace(each, place=numbers[each.id]) if each.id in numbers else each for each in found]


def waiting_owners(connection: sa.Connection) -> list[str]:
    """Those of whom something waits for a place."""
    return list(connection.execute(sa.select(tasks.c.owner_id).where(*_WAITING, THERE).distinct()).scalars())
