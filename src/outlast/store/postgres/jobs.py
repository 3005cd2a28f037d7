"""The jobs that tell workers to look: PgQueuer's tables, beside ours on PostgreSQL.

A job says that an attempt of a turn or a task may start. It is not the attempt: our own rows say what runs.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid5

import sqlalchemy as sa
from pgqueuer.adapters.persistence.qb import QueryBuilderEnvironment, QueryQueueBuilder, QuerySchedulerBuilder
from pgqueuer.db import AsyncpgDriver
from pgqueuer.domain.settings import DBSettings, Durability
from pgqueuer.domain.types import Channel
from pgqueuer.ports.driver import NotifyCallback
from pgqueuer.queries import Queries
from pydantic_core import from_json
from sqlalchemy.util import await_only

from outlast.ids import WorkerId, is_task
from outlast.store.outbox import Work
from outlast.store.unit import Unit

PREFIX = "outlast_"
# Every name is said here, for the environment may hold some that are meant for other queues.
_NAMES = DBSettings(
    prefix=PREFIX,
    db_schema=None,
    channel=Channel(f"{PREFIX}jobs"),
    function=f"{PREFIX}fn_pgqueuer_changed",
    statistics_table=f"{PREFIX}pgqueuer_statistics",
    queue_status_type=f"{PREFIX}pgqueuer_status",
    queue_table=f"{PREFIX}pgqueuer",
    queue_table_log=f"{PREFIX}pgqueuer_log",
    trigger=f"{PREFIX}tg_pgqueuer_changed",
    schedules_table=f"{PREFIX}pgqueuer_schedules",
    durability=Durability.balanced,
)
CHANNEL = Channel(_NAMES.channel)
_BUILDERS = (QueryBuilderEnvironment(_NAMES), QueryQueueBuilder(_NAMES), QuerySchedulerBuilder(_NAMES))
_MANAGERS = UUID("6f75746c-6173-4000-8000-776f726b6572")


class _Driver(AsyncpgDriver):
    """Wakes nobody because a job is done: only those that are new or given back are there to be taken."""

    async def add_listener(self, channel: str, callback: NotifyCallback) -> None:
        def hear(payload: str | bytes | bytearray) -> None:
            if from_json(payload).get("operation") != "delete":
                callback(payload)

        await super().add_listener(channel, hear)


def queries(connection: Any) -> Queries:
    """PgQueuer on an `asyncpg` connection, with our names."""
    return Queries(_Driver(connection), *_BUILDERS)


def turns_of(agent: str) -> str:
    """Where the turns of an agent wait. Workers take only the jobs of agents that they have."""
    return f"outlast:{agent}"


def tasks_of(agent: str) -> str:
    """Where the tasks of an agent wait: in a line of their own, so that a thousand of them delay no turn."""
    return f"outlast.tasks:{agent}"


def manager_of(worker_id: WorkerId) -> UUID:
    """The name under which a worker takes jobs: whoever buries it can find what it took and did not claim."""
    return uuid5(_MANAGERS, worker_id)


async def install(connection: Any) -> bool:
    """Inside the migrating transaction. True: the tables are there, but of an older PgQueuer (see `upgrade`)."""
    found = queries(connection)
    if await found.schema_is_installed():
        return bool((await found.plan_upgrade()).statements)
    await found.install()
    return False


async def upgrade(connection: Any) -> None:
    """Outside of any transaction: new values of an enum cannot be made and used in one."""
    await queries(connection).apply_upgrade()


def enqueue(unit: Unit, work: Sequence[Work]) -> None:
    """In the unit's own transaction: what is rolled back leaves no job."""
    raw = unit.driver
    assert raw.is_in_transaction(), "a job outside the transaction would survive its rollback"
    delays = [None if each.not_before is None else max(each.not_before - unit.now, _NOW) for each in work]
    payloads: list[bytes | None] = [each.id.encode() for each in work]
    names = [(tasks_of if is_task(each.id) else turns_of)(each.agent) for each in work]
    await_only(queries(raw).enqueue(names, payloads, [each.priority for each in work], delays))


def give_back(unit: Unit, worker_id: WorkerId) -> None:
    """What a dead worker took and did not claim may be taken by others, who are told: PgQueuer tells of no updates."""
    if unit.connection.execute(_GIVE_BACK, {"manager": manager_of(worker_id)}).rowcount:
        unit.connection.execute(_TELL)


def prune(unit: Unit) -> None:
    """PgQueuer writes down each step of each job; nobody reads it here."""
    unit.connection.execute(_PRUNE)


NEXT = (
    f"SELECT CASE WHEN EXISTS (SELECT 1 FROM {_NAMES.queue_table} WHERE entrypoint = ANY($1) AND status = 'queued' "
    "AND execute_after <= now()) THEN interval '0' ELSE (SELECT min(execute_after) - now() "
    f"FROM {_NAMES.queue_table} WHERE entrypoint = ANY($1) AND status = 'queued') END AS due_in"
)
"""SQL: how long until a job can be taken; NULL without one."""
_NOW = timedelta()
_GIVE_BACK = sa.text(
    f"UPDATE {_NAMES.queue_table} SET status = 'queued', queue_manager_id = NULL, slot = NULL, execute_after = now() "
    "WHERE queue_manager_id = :manager AND status = 'picked'"
)
_TELL = sa.text(
    f"SELECT pg_notify('{_NAMES.channel}', json_build_object('channel', '{_NAMES.channel}', 'operation', 'update', "
    f"'sent_at', now(), 'table', '{_NAMES.queue_table}', 'type', 'table_changed_event')::text)"
)
_PRUNE = sa.text(f"DELETE FROM {_NAMES.queue_table_log} WHERE created < now() - interval '10 minutes'")
HAS_JOB = f"EXISTS (SELECT 1 FROM {_NAMES.queue_table} AS job WHERE job.payload = convert_to({{id}}, 'UTF8'))"
"""SQL: whether a job of the thing with this id is there."""
