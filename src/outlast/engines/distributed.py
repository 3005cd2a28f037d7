"""The distributed engine: many processes on one PostgreSQL. Jobs start attempts; our own rows say what runs."""

from collections.abc import Sequence
from dataclasses import replace

import sqlalchemy as sa
import structlog

from outlast.agents.messages.history import message_type
from outlast.duties.duty import Duty, DutyRunner
from outlast.engines.job_consumer import JobConsumer, Later
from outlast.engines.presence import Presence
from outlast.engines.sweep import Sweep
from outlast.errors import StoreUnavailable
from outlast.ids import TaskId, TurnId, WorkerId, is_task
from outlast.runs.worker import Places, Worker
from outlast.store.outbox import Outbox, Work
from outlast.store.postgres import jobs
from outlast.store.postgres.database import PostgresDatabase
from outlast.store.repositories import workers
from outlast.store.unit import Unit
from outlast.transitions.tasks.many_tasks import NotNow

log = structlog.get_logger("outlast.engine")

_LEAD = sa.text("SELECT pg_try_advisory_lock(3, 0)")
"""For the connection of one worker, again and again. The first number is apart from those of `OwnerLock`."""


class AcceptingEngine:
    """Accepts work and runs none: the jobs it commits are taken by workers elsewhere."""

    async def start(self) -> None:
        return

    async def close(self) -> None:
        return

    def claimant(self, unit: Unit, work: Work) -> WorkerId | None:
        return None

    def drop(self, work: Sequence[Work]) -> None:
        """Nothing is claimed here."""

    def enqueue(self, unit: Unit, work: Sequence[Work]) -> None:
        unclaimed = [each for each in work if each.claim is None]
        if unclaimed:
            jobs.enqueue(unit, unclaimed)

    def notice(self, work: Sequence[Work]) -> None:
        """The database tells whoever waits for jobs: nothing more to say."""


class DistributedEngine(AcceptingEngine):
    """Takes jobs of its agents while it has room, claims what they mean, and runs it in this process.

    Others see that it is there; when they took it for dead, it stops what it runs and goes on under a new name.
    """

    def __init__(
        self,
        worker: Worker,
        url: sa.URL,
        *,
        outbox: Outbox,
        duties: Sequence[Duty],
        places: Places,
        drain_seconds: float,
    ) -> None:
        self._worker = worker
        worker.permit = self._may_claim
        self._places = places
        self._drain_seconds = drain_seconds
        self._is_open = False
        parts = worker.parts
        self._presence = Presence(url, parts.worker_id, agents=tuple(parts.hosts), when_lost=self._lost)
        worker.parts = replace(parts, calls=replace(parts.calls, confirm=self._presence.confirm))
        # Of its own: in the line of the pool, the dead would be found when the living have less to do.
        self._sweeping = PostgresDatabase(url, pool_size=1)
        self._sweeping.limits = parts.database.limits
        self._sweeping.attach(outbox)
        self._sweep = Sweep(
            self._sweeping,
            me=self._name,
        )
        self._duties = DutyRunner(duties, leads=self._leads)
        self._job_consumer = JobConsumer(url, tuple(parts.hosts), take=self._take, room=self._room, name=self._name)

    async def start(self) -> None:
        message_type()  # takes a while: not when the turns of a dead worker come, all at once
        await self._presence.start()
        self._sweep.start()
        self._duties.start()
        self._job_consumer.start()
        self._is_open = True

    async def close(self) -> None:
        """First no new work, then a boundary for what runs; what is left is given to others before this one is gone."""
        self._is_open = False
        self._worker.leave()
        await self._job_consumer.close()
        await self._worker.close(self._drain_seconds)
        await self._duties.close()
        await self._sweep.close()
        self._presence.leave()
        try:
            await self._sweep.leave(self._name())
            await self._sweeping.close()
        finally:
            await self._presence.close()  # or others would see for ever that it lives

    def claimant(self, unit: Unit, work: Work) -> WorkerId | None:
        """A sequel needs no job if there is room here. The first turn for a message goes to whoever is free."""
        turns, _ = self._room()
        if not (work.is_sequel and self._is_open and turns > 0 and self._worker.has(work)):
            return None
        name = self._worker.expect(work)  # before the database is asked: others may be at this point meanwhile
        if workers.may_begin(unit, name):
            return name
        self._worker.forget(work)
        return None

    def drop(self, work: Sequence[Work]) -> None:
        for each in work:
            self._worker.forget(each)

    def notice(self, work: Sequence[Work]) -> None:
        for each in work:
            if each.claim is not None:
                self._worker.begin(each, may_be_stopped=True)

    async def _leads(self) -> bool:
        """One worker of all does what is shared. Its connection holds the lock: when that ends, another one leads."""
        return await self._sweeping.glance(lambda connection: bool(connection.execute(_LEAD).scalar_one()))

    def _name(self) -> WorkerId:
        return self._worker.parts.worker_id

    def _room(self) -> tuple[int, int]:
        if self._sweep.is_requeueing:
            return 0, 0  # others may have taken what comes first before all of it is given back
        worker, places = self._worker, self._places
        return places.turns - worker.busy_turns, places.tasks - len(worker.tasks)

    async def _take(self, id: str) -> None:
        """Claim in our table, start our own coroutine, return. A job that comes twice claims nothing."""
        try:
            await (self._worker.tasks.take(TaskId(id)) if is_task(id) else self._worker.take(TurnId(id)))
        except (StoreUnavailable, NotNow) as exc:
            raise Later(str(exc)) from exc

    def _may_claim(self, unit: Unit, worker_id: WorkerId) -> bool:
        if workers.may_begin(unit, worker_id):
            return True
        if workers.is_present(unit, worker_id):
            return False
        raise NotNow(f"{worker_id} was taken for dead: it claims nothing until it has a new name")

    def _lost(self, new: WorkerId) -> None:
        parts = self._worker.parts
        self._worker.parts = replace(parts, calls=replace(parts.calls, worker_id=new))
        self._worker.lose()
