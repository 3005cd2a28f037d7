"""A small engine on PgQueuer, to show that the engine's port is enough for a home other than this process.

A job starts an attempt; it is not the attempt: its handler hands the turn to the worker and returns.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import asyncpg
import sqlalchemy as sa
from pgqueuer.core.qm import QueueManager
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from sqlalchemy.util import await_only

from outlast import Outlast
from outlast.engines.engine import Worker
from outlast.events.signals import LocalSignals, log_topic
from outlast.ids import TurnId
from outlast.sessions.delete import Deletions
from outlast.sessions.log_reader import LogPages
from outlast.sessions.services import Services
from outlast.store import opening
from outlast.store.files import FileStore
from outlast.store.unit import Committed, Unit, Work

ENTRYPOINT = "turn"


class PgQueuerEngine:
    """Jobs go into the transaction of the state they belong to; a queue manager of this process takes them."""

    def __init__(self, worker: Worker, connection: Any) -> None:
        self._worker = worker
        self._manager = QueueManager(Queries.from_asyncpg_connection(connection))
        self._manager.entrypoint(ENTRYPOINT)(self._handle)
        self._running: asyncio.Task[None] | None = None
        self.handled: list[str] = []

    def start(self) -> None:
        taking = self._manager.run(
            dequeue_timeout=timedelta(seconds=1),
            heartbeat_timeout=timedelta(seconds=2),
            log_aggregation_interval=timedelta(0),
        )
        self._running = asyncio.create_task(taking, name="queue manager")

    async def close(self) -> None:
        await self._worker.close(1.0)
        self._manager.shutdown.set()
        if self._running is not None:
            await self._running

    def enqueue(self, unit: Unit, work: Sequence[Work]) -> None:
        raw: Any = unit.connection.connection.driver_connection
        assert raw.is_in_transaction(), "a job outside the transaction would survive its rollback"
        queries = Queries.from_asyncpg_connection(raw)
        payloads: list[bytes | None] = [each.id.encode() for each in work]
        await_only(queries.enqueue([ENTRYPOINT] * len(work), payloads, [0] * len(work)))

    def notice(self, work: Sequence[Work]) -> None:
        """The queue tells whoever waits for jobs: nothing more to say."""

    async def _handle(self, job: Job) -> None:
        assert job.payload is not None
        self.handled.append(job.payload.decode())
        self._worker.begin(Work(TurnId(job.payload.decode()), "", ""))


class _Outbox:
    def __init__(self, signals: LocalSignals) -> None:
        self.signals = signals
        self.engine: PgQueuerEngine | None = None

    def enqueue(self, unit: Unit, work: Sequence[Work]) -> None:
        assert self.engine is not None
        self.engine.enqueue(unit, work)

    def deliver(self, committed: Committed) -> None:
        self.signals.publish([*(log_topic(event.session_id) for event in committed.events), *committed.signals])


class PgQueuerOutlast(Outlast[Any, Any]):
    """The runtime as it is, with PostgreSQL as its store and PgQueuer as its engine."""

    engine: PgQueuerEngine
    folder: Path

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await self._start(stack)
            self._stack = stack.pop_all()
        return self

    async def _start(self, stack: AsyncExitStack) -> None:
        database = await opening.open_postgres(self._url)
        stack.push_async_callback(database.close)
        connection = await connected(self._url)
        stack.push_async_callback(connection.close)
        queries = Queries.from_asyncpg_connection(connection)
        if not await queries.schema_is_installed():
            await queries.install()
        files = FileStore(str(self.folder))
        outbox = _Outbox(LocalSignals())
        database.attach(outbox)
        workshop = await self._workshop(stack, database, files, outbox.signals)
        self.engine = outbox.engine = PgQueuerEngine(Worker(workshop), connection)
        self._services = Services(
            database,
            files,
            outbox.signals,
            self._limits(),
            frozenset(self._models),
            10_000,
            self._typed,
            Deletions(database, files),
            LogPages(database),
        )
        stack.push_async_callback(self._services.deletions.close)
        stack.push_async_callback(self.engine.close)
        self.engine.start()


async def connected(url: sa.URL) -> Any:
    """A connection of its own, as PgQueuer wants it."""
    host = url.query["host"]
    assert isinstance(host, str)
    driver: Any = asyncpg
    return await driver.connect(user=url.username, database=url.database, host=host)
