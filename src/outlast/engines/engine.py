"""The port to where attempts run, and the worker code that is the same in every home."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import structlog

from outlast.errors import AttemptLost, StoreUnavailable
from outlast.ids import TaskId, TurnId, is_task
from outlast.sessions import turn
from outlast.sessions.attempt import Attempt, Cause, Workshop
from outlast.sessions.host import TurnContext
from outlast.store import events
from outlast.store.unit import Unit, Work
from outlast.tasks import service
from outlast.tasks.rerun import run_again

log = structlog.get_logger("outlast.engine")


class Engine(Protocol):
    """Starts attempts. Work is enqueued in the transaction of the state it belongs to."""

    def enqueue(self, unit: Unit, work: Sequence[Work]) -> None:
        """Inside the transaction: what is committed will be started, what is rolled back will not."""
        ...

    def notice(self, work: Sequence[Work]) -> None:
        """After the commit, in the process that made it."""
        ...


class Worker:
    """Claims turns and runs their attempts in this process. Every attempt is owned here."""

    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop
        self._attempts: dict[str, Attempt] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    @property
    def running(self) -> int:
        return len(self._running)

    def begin(self, work: Work) -> asyncio.Task[None] | None:
        """Start an attempt of a turn or a task, unless one of it already runs here. It claims what is not claimed."""
        if work.id in self._running:
            return None
        if isinstance(work.claim, turn.Claim):
            self._attempts[work.id] = Attempt(self.workshop, work.claim)
        attempt = self._run_again(TaskId(work.id)) if is_task(work.id) else self._attempt(TurnId(work.id))
        running = asyncio.create_task(attempt, name=f"attempt {work.id}")
        self._running[work.id] = running
        return running

    async def close(self, drain_seconds: float) -> None:
        """Let turns reach a boundary and hand them over; then cancel what still runs and hand that over too."""
        for attempt in self._attempts.values():
            attempt.leave()
        await self._wait(drain_seconds)
        for attempt in self._attempts.values():
            attempt.cancel(Cause.SHUTDOWN)
        await self.workshop.calls.parked.close(drain_seconds)
        await self._wait(None)

    async def _wait(self, seconds: float | None) -> None:
        while self._running:
            _, pending = await asyncio.wait(set(self._running.values()), timeout=seconds)
            if pending:
                return

    async def _attempt(self, turn_id: TurnId) -> None:
        try:
            attempt = self._attempts.get(turn_id)
            if attempt is None:
                claim = await self._claim(turn_id)
                if claim is None:
                    return
                attempt = self._attempts[turn_id] = Attempt(self.workshop, claim)
                attempt.look()
            await attempt.run()
            if attempt.has_many_deltas:
                await self._fold(attempt.claim)
        except Exception:
            log.exception("an attempt ended unexpectedly", turn_id=turn_id)
        finally:
            self._attempts.pop(turn_id, None)
            self._running.pop(turn_id, None)

    async def _run_again(self, task_id: TaskId) -> None:
        """Another attempt of a task whose worker died; from the claim on, its end is told by the task."""
        shop = self.workshop
        try:
            claimed = await shop.database.transaction(
                lambda unit: service.claim(unit, task_id, shop.worker_id), name="task.claim"
            )
            if claimed is None:
                return
            task, deadline_in = claimed
            host = shop.hosts[task.spec["agent"]]
            await host.enter()
            lease = host.lease(TurnContext(task.owner_id, task.session_id, task.turn_id))
            await run_again(host.agent, shop.calls, shop.threads, task, lease, deadline_in=deadline_in)
        except Exception:
            log.exception("a task could not be run again", task_id=task_id)
        finally:
            self._running.pop(task_id, None)

    async def _claim(self, turn_id: TurnId) -> turn.Claim | None:
        wait = 0.02
        while True:
            try:
                return await self.workshop.database.transaction(
                    lambda unit: turn.claim(unit, turn_id, self.workshop.worker_id), name="claim"
                )
            except StoreUnavailable as exc:
                if exc.details.get("is_closed"):
                    return None
                await asyncio.sleep(wait)
                wait = min(wait * 2, 1.0)

    async def _fold(self, claim: turn.Claim) -> None:
        """The text of a turn that ended is kept in a few rows; readers in the middle get just the rest."""
        fence = claim.fence
        try:
            await self.workshop.database.transaction(
                lambda unit: events.fold_parts(unit, fence.session_id, fence.turn_id, after=claim.turn.first_event),
                name="fold",
            )
        except (StoreUnavailable, AttemptLost) as exc:
            log.info("folding left for later", turn_id=fence.turn_id, error=str(exc))
