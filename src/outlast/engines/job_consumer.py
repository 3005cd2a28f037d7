"""Taking jobs: PgQueuer's manager on a connection of its own, made anew whenever that is lost."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
import structlog
from pgqueuer.core.qm import QueueManager
from pgqueuer.domain.types import QueueEntrypoint, QueueManagerId
from pgqueuer.errors import RetryRequested
from pgqueuer.models import Job
from pgqueuer.ports.repository import EntrypointExecutionParameter

from outlast.ids import WorkerId
from outlast.store.postgres import jobs
from outlast.store.postgres.connection import connect
from outlast.values.redact import error_chain

log = structlog.get_logger("outlast.engine")

_FEW, _MANY = 10, 32
"""How many are taken at once: of turns few, for other workers may be free; many where only tasks have come of late."""
_POLL = timedelta(seconds=1)
_NEAR = timedelta(milliseconds=50)
"""How often to look for room."""
_AT_ONCE = timedelta(milliseconds=1)
_PICKED = timedelta(seconds=2)
"""How long a job may be taken and not claimed before another worker takes it too."""
_LATER = timedelta(milliseconds=200)
_RETRY_SECONDS = 0.1


class Later(Exception):
    """The job cannot be claimed here and now; it stays in the queue."""


Room = Callable[[], tuple[int, int]]
"""How many more turns and how many more tasks may be started."""


class _Manager(QueueManager):
    """Takes no more than there is room for. Turns and tasks wait in lines of their own: neither keeps the other out."""

    room: Room
    lines: tuple[tuple[QueueEntrypoint, ...], tuple[QueueEntrypoint, ...]]
    _at_once = _FEW

    async def fetch_jobs(
        self, batch_size: int, global_concurrency_limit: int | None, heartbeat_timeout: timedelta
    ) -> AsyncGenerator[Job, None]:
        unlimited = EntrypointExecutionParameter(concurrency_limit=0)
        while not self.shutdown.is_set():
            free = self._free()
            if not free:
                return
            most = min(self._at_once, *free.values())
            found = await self.queries.dequeue(
                batch_size=most,
                entrypoints={each: unlimited for line in free for each in line},
                queue_manager_id=self.queue_manager_id,
                global_concurrency_limit=None,
                heartbeat_timeout=heartbeat_timeout,
            )
            if found:
                turns, _ = self.lines
                self._at_once = _FEW if any(job.entrypoint in turns for job in found) else _MANY
            for job in found:
                yield job
            if len(found) < most:
                return  # what came meanwhile is seen when it is asked how long to wait

    async def _effective_dequeue_timeout(self, dequeue_timeout: timedelta) -> timedelta:
        """One question in place of PgQueuer's three: each worker asks it whenever a job comes."""
        rows = await self.queries.driver.fetch(jobs.NEXT, list(self.entrypoint_registry))
        due_in: Any = rows[0]["due_in"]
        if due_in is None:
            return dequeue_timeout
        return min(max(due_in, _AT_ONCE if self._free() else _NEAR), dequeue_timeout)

    def _free(self) -> dict[tuple[QueueEntrypoint, ...], int]:
        # What was taken and is not claimed yet may be of either kind.
        taken = len(self.job_context)
        return {line: room - taken for line, room in zip(self.lines, self.room(), strict=True) if room > taken}


class JobConsumer:
    """Hands the ids that jobs carry to `take`, which must claim before it returns, or raise `Later`."""

    def __init__(
        self,
        url: sa.URL,
        agents: Sequence[str],
        *,
        take: Callable[[str], Awaitable[None]],
        room: Room,
        name: Callable[[], WorkerId],
    ) -> None:
        self._url = url
        self._agents = agents
        self._take = take
        self._room = room
        self._name = name
        self._is_closing = False
        self._manager: _Manager | None = None
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._running = asyncio.create_task(self._run(), name="jobs")

    async def close(self) -> None:
        """From now on nothing is taken; what was taken is claimed when this returns, or left in the queue."""
        self._is_closing = True
        if self._manager is not None:
            self._manager.shutdown.set()
        if self._running is not None:
            await asyncio.wait({self._running})

    async def _run(self) -> None:
        while not self._is_closing:
            try:
                await self._run_once()
            except Exception as exc:  # whatever it was: without jobs this worker would idle for ever
                log.warning("taking jobs was interrupted", error=repr(exc))
            if not self._is_closing:
                await asyncio.sleep(_RETRY_SECONDS)

    async def _run_once(self) -> None:
        has_ended = asyncio.Event()
        connection = await connect(self._url, name="jobs", when_closed=has_ended.set)
        manager = self._manager = _Manager(jobs.queries(connection), channel=jobs.CHANNEL)
        manager.room = self._room
        manager.queue_manager_id = QueueManagerId(jobs.manager_of(self._name()))
        manager.lines = (
            tuple(QueueEntrypoint(jobs.turns_of(agent)) for agent in self._agents),
            tuple(QueueEntrypoint(jobs.tasks_of(agent)) for agent in self._agents),
        )
        for line in manager.lines:
            for each in line:
                manager.entrypoint(each)(self._handle)
        manager.shutdown = has_ended
        if self._is_closing:
            manager.shutdown.set()
        try:
            await manager.run(
                dequeue_timeout=_POLL,
                batch_size=_MANY,
                heartbeat_timeout=_PICKED,
                shutdown_on_listener_failure=True,
                log_aggregation_interval=timedelta(0),
            )
        finally:
            connection.terminate()

    async def _handle(self, job: Job) -> None:
        """Never fails: PgQueuer throws a job away whose handler did."""
        assert job.payload is not None
        try:
            await self._take(job.payload.decode())
        except Later as exc:
            raise RetryRequested(_LATER, str(exc)) from exc
        except Exception as exc:
            log.error("a job could not be taken", id=job.payload.decode(), exception=error_chain(exc))
            raise RetryRequested(_PICKED, repr(exc)) from exc
