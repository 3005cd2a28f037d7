"""Workers: who is there to run work, how it is seen that one is not, and what it left. PostgreSQL only."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from outlast.ids import SessionId, TaskId, TurnId, WorkerId
from outlast.store.postgres import jobs
from outlast.store.repositories import pauses
from outlast.store.repositories.agents import HELD, SILENT, lock_key
from outlast.store.repositories.stored_task import WITH_WORKER
from outlast.store.repositories.tasks import MAY_BE_RUN
from outlast.store.repositories.turns import TurnState
from outlast.store.sql.statement import Statement
from outlast.store.tables import pauses as pauses_table
from outlast.store.tables import sessions, tasks, turns, workers
from outlast.store.unit import Unit
from outlast.wire.task_state import TaskState


@dataclass(frozen=True, slots=True)
class Sighting:
    """A worker as it looks from outside."""

    id: WorkerId
    place: str
    pid: int
    seen_at: int
    silent_seconds: float
    is_connected: bool
    """It holds its lock: the connection of the process that took it is there."""


@dataclass(frozen=True, slots=True)
class Roll:
    """All workers at one moment, and for how long the database itself has been up."""

    sightings: list[Sighting]
    uptime_seconds: float


@dataclass(frozen=True, slots=True)
class Left:
    """What nobody runs any more, and the sessions it belongs to."""

    turns: dict[TurnId, SessionId]
    tasks: dict[TaskId, SessionId]


def roll(connection: sa.Connection) -> Roll:
    """In one statement: every worker asks four times a second."""
    found = connection.execute(_ROLL).all()
    sightings = [
        Sighting(
            WorkerId(row.id), row.host, row.pid, row.seen_at, float(row.silent), lock_key(WorkerId(row.id)) in row.held
        )
        for row in found
        if row.id is not None
    ]
    return Roll(sightings, float(found[0].uptime))


def is_present(unit: Unit, worker_id: WorkerId) -> bool:
    """Until the commit nobody can declare this worker dead: what it claims here, whoever buries it will find."""
    return _PRESENT.first(unit.reading(workers), id=worker_id) is not None


def may_begin(unit: Unit, worker_id: WorkerId) -> bool:
    """It is present, and there is no pause."""
    return _PRESENT_UNPAUSED.first(unit.reading(workers, pauses_table), id=worker_id) is not None


def remove(unit: Unit, worker_id: WorkerId, *, seen_at: int | None = None) -> bool:
    """True for the one who removed it. With `seen_at`: only if it has not been seen since."""
    statement = sa.delete(workers).where(workers.c.id == worker_id)
    if seen_at is not None:
        statement = statement.where(workers.c.seen_at == seen_at)
    return unit.connection.execute(statement).rowcount == 1


def left(connection: sa.Connection) -> Left:
    """What runs under the name of a worker that is not there."""
    return _left(connection, _LEFT_TURNS, _LEFT_TASKS)


def forgotten(connection: sa.Connection) -> Left:
    """What waits for a worker without a job that says so: a job that failed is gone, what it meant is not.

    In a pause that is as it should be: the end of the pause makes new jobs.
    """
    if pauses.find(connection) is not None:
        return Left({}, {})
    return _left(connection, _FORGOTTEN_TURNS, _FORGOTTEN_TASKS)


def _left(connection: sa.Connection, of_turns: sa.Select[Any, Any], of_tasks: sa.Select[Any, Any]) -> Left:
    found_turns, found_tasks = connection.execute(of_turns), connection.execute(of_tasks)
    return Left(
        {TurnId(row.id): SessionId(row.session_id) for row in found_turns},
        {TaskId(row.id): SessionId(row.session_id) for row in found_tasks},
    )


# Without workers there is one row that names none.
_ROLL = sa.text(
    f"SELECT id, host, pid, seen_at, {SILENT} AS silent, "
    "extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) AS uptime, held "
    f"FROM (SELECT {HELD} AS held) AS locks LEFT JOIN workers ON true"
)
# Kept from being removed, not from being renewed: whoever claims again and again must not look silent for that.
_THIS = sa.select(workers.c.id).where(workers.c.id == sa.bindparam("id")).with_for_update(read=True, key_share=True)
_PRESENT = Statement(_THIS)
_PRESENT_UNPAUSED = Statement(_THIS.where(~sa.exists().where(pauses_table.c.id.is_not(None))))


def _there(table: sa.Table) -> sa.ColumnElement[bool]:
    return sa.exists().where(sessions.c.id == table.c.session_id, sessions.c.deleted_at.is_(None))


def _nobody_has(table: sa.Table) -> sa.ColumnElement[bool]:
    return ~sa.exists().where(workers.c.id == table.c.worker_id)


def _has_no_job(table: sa.Table) -> sa.ColumnElement[bool]:
    return sa.not_(sa.literal_column(jobs.HAS_JOB.format(id=f"{table.name}.id"), sa.Boolean))


_LEFT_TURNS = sa.select(turns.c.id, turns.c.session_id).where(
    turns.c.state == TurnState.RUNNING.value, turns.c.ended_at.is_(None), _nobody_has(turns), _there(turns)
)
_LEFT_TASKS = sa.select(tasks.c.id, tasks.c.session_id).where(
    tasks.c.state.in_(WITH_WORKER),
    tasks.c.ended_at.is_(None),
    tasks.c.worker_id.is_not(None),
    _nobody_has(tasks),
    _there(tasks),
)
_FORGOTTEN_TURNS = sa.select(turns.c.id, turns.c.session_id).where(
    turns.c.state == TurnState.QUEUED.value,
    turns.c.ended_at.is_(None),
    turns.c.admitted_at.is_not(None),
    _has_no_job(turns),
    _there(turns),
)
_FORGOTTEN_TASKS = sa.select(tasks.c.id, tasks.c.session_id).where(
    tasks.c.state == TaskState.QUEUED.value, tasks.c.ended_at.is_(None), MAY_BE_RUN, _has_no_job(tasks), _there(tasks)
)
