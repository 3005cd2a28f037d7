"""A worker: it claims turns and tasks and runs their attempts in this process, the same in every engine."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import structlog

from outlast.clock import monotonic
from outlast.errors import StoreUnavailable
from outlast.ids import TurnId, WorkerId, is_task
from outlast.runs.expected import ExpectedClaims
from outlast.runs.task_runs import TaskRuns
from outlast.runs.turns.attempt import Attempt, Cause
from outlast.runs.worker_parts import WorkerParts
from outlast.store.database import retry_while_unavailable
from outlast.store.outbox import Work
from outlast.store.repositories import events, pauses
from outlast.store.unit import Unit
from outlast.transitions import turn
from outlast.transitions.tasks.many_tasks import NotNow, Permit
from outlast.values.redact import error_chain

log = structlog.get_logger("outlast.engine")


_CLAIMS_FIRST_SECONDS = 0.5
"""So long at most a turn that is claimed waits for others to be."""
_ARRIVAL_SECONDS = 0.005
"""How often to look whether they have come: any transaction may bring them."""


def _permitted(unit: Unit, worker_id: WorkerId) -> bool:
    return unit.once(pauses.find) is None


@dataclass(frozen=True, slots=True)
class Places:
    """How many turns and how many tasks a worker runs at once."""

    turns: int
    tasks: int


class Worker:
    """Claims turns and runs their attempts in this process; `tasks` does so for tasks. Every attempt is owned here."""

    def __init__(self, parts: WorkerParts) -> None:
        self.parts = parts
        self.permit: Permit = _permitted
        self._attempts: dict[str, Attempt] = {}
        self._claimed: dict[str, Attempt] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._handed_again: set[str] = set()
        """Turns, while they ran: they may have been given back."""
        self._claiming: list[TurnId] = []
        self._has_claimed = asyncio.Event()
        self._expected = ExpectedClaims(lambda: self.parts)
        self.tasks = TaskRuns(lambda: self.parts, lambda unit, worker_id: self.permit(unit, worker_id))
        self._is_leaving = False

    @property
    def busy_turns(self) -> int:
        """Those that run, and those that are being claimed as they are made; but none that only waits for others."""
        return len(self._running) + len(self._expected) - self.parts.waits.lent(self._running)

    def runs(self, turn_id: TurnId) -> bool:
        """It is claimed by this process and was not left behind, or is being claimed."""
        is_coming = turn_id in self._claiming or turn_id in self._expected
        return is_coming or turn_id in self._running

    def has(self, work: Work) -> bool:
        """Its agent may have been renamed or removed since; with it, or in another program, the work goes on."""
        return work.agent in self.parts.hosts

    def expect(self, work: Work) -> WorkerId:
        """A place is kept for what is claimed as it is made, until `begin`, or `forget` if it is not made."""
        return (self.tasks.expected if is_task(work.id) else self._expected).expect(work)

    def forget(self, work: Work) -> None:
        (self.tasks.expected if is_task(work.id) else self._expected).forget(work)

    def begin(self, work: Work, *, may_be_stopped: bool = False) -> asyncio.Task[None] | None:
        """Start an attempt of a turn or a task, unless one of it already runs here. It claims what is not claimed.

        A claim is never dropped: while an earlier attempt of the turn still runs here, it is taken up after it.
        `may_be_stopped`: others may have seen the claim before this process did.
        """
        if is_task(work.id):
            self.tasks.begin(work)
            return None
        parts = self._expected.begin(work)
        if isinstance(work.claim, turn.Claim):
            attempt = self._claimed[work.id] = Attempt(parts, work.claim)
            if may_be_stopped:
                attempt.look()
        if work.id in self._running:
            self._handed_again.add(work.id)
            return None
        # Not in the context of whoever made it, who may have been in the middle of a request, or of another call.
        context = parts.context.copy()
        running = asyncio.create_task(self._attempt(TurnId(work.id)), name=f"attempt {work.id}", context=context)
        self._running[work.id] = running
        return running

    async def take(self, turn_id: TurnId) -> None:
        """Claim a turn and start it: claimed, or not there to claim, when this returns."""
        parts = self.parts
        self._claiming.append(turn_id)
        self._has_claimed.clear()
        try:
            claim = await parts.database.transaction(lambda unit: self._claim_turn(unit, turn_id, parts), name="claim")
        finally:
            self._claiming.remove(turn_id)
            if not self._claiming:
                self._has_claimed.set()
        if claim is not None:
            claimed = Work(turn_id, claim.owner_id, claim.agent, claim=claim)
            self._expected.expect_as(claimed, parts)
            self.begin(claimed, may_be_stopped=True)

    def leave(self) -> None:
        """Hand over at the next boundary, and begin nothing any more."""
        self._is_leaving = True
        self.tasks.leave()
        for attempt in self._attempts.values():
            attempt.leave()

    def lose(self) -> None:
        """All that runs here belongs to others now: stop it at once; what becomes of it is theirs to tell."""
        for attempt in self._attempts.values():
            attempt.cancel(Cause.LOST)
        self.parts.calls.parked.lose()

    async def close(self, drain_seconds: float) -> None:
        """Let turns reach a boundary and hand them over; then cancel what still runs and hand that over too.

        Parked calls have the same time, from now on.
        """
        self.leave()
        until = monotonic() + drain_seconds
        await self._let_arrive(until)
        await self._wait(max(0.0, until - monotonic()))
        for attempt in self._attempts.values():
            attempt.cancel(Cause.SHUTDOWN)
        # First the turns: calls that do not confirm their cancel are left to `parked`.
        leaving = {self._running[turn_id] for turn_id in self._attempts}
        if leaving:
            await asyncio.wait(leaving)
        await self.parts.calls.parked.close(max(0.0, until - monotonic()))
        await self._wait(None)

    async def _let_arrive(self, until: float) -> None:
        """Wait for commits that are under way: what they claim is given back, or who finds it thinks it had begun."""
        while (self._expected or self.tasks.expected) and monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(_ARRIVAL_SECONDS)

    async def _wait(self, seconds: float | None) -> None:
        """For turns, and for tasks that are being started: `parked` owns the tools of those that run."""
        while running := {*self._running.values(), *self.tasks.starting}:
            _, pending = await asyncio.wait(running, timeout=seconds)
            if pending:
                return

    async def _attempt(self, turn_id: TurnId) -> None:
        try:
            attempt = await self._next(turn_id, is_free=True)
            while attempt is not None:
                self._attempts[turn_id] = attempt
                is_broken = await self._run(attempt)
                # The turn may have been given back and claimed again while its attempt ran here.
                attempt = await self._next(turn_id, is_free=is_broken)
        except Exception as exc:
            log.error("a turn could not be brought to an end", turn_id=turn_id, exception=error_chain(exc))
        finally:
            self._attempts.pop(turn_id, None)
            self._handed_again.discard(turn_id)
            self._running.pop(turn_id, None)

    async def _next(self, turn_id: TurnId, *, is_free: bool) -> Attempt | None:
        """What another commit claimed, also while it is asked for here; if it may be free, what can be claimed."""
        is_free = is_free or turn_id in self._handed_again
        self._handed_again.discard(turn_id)
        claimed = await self._claim(turn_id) if is_free and turn_id not in self._claimed else None
        if claimed is None and turn_id in self._handed_again:  # in this moment
            return await self._next(turn_id, is_free=True)
        return claimed or self._claimed.pop(turn_id, None)

    async def _let_claim(self) -> None:
        """A claim is short, and told: of many turns that come at once, each is taken up before the first runs on."""
        if self._claiming:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLAIMS_FIRST_SECONDS):
                    await self._has_claimed.wait()

    async def _run(self, attempt: Attempt) -> bool:
        """True when the attempt broke down and its turn was given back."""
        fence = attempt.claim.fence
        await self._let_claim()
        if self._is_leaving:
            await self._give_back(fence, has_crashed=False)
            return False
        try:
            await attempt.run()
        except Exception as exc:
            if isinstance(exc, StoreUnavailable) and exc.is_closed:
                return False  # whoever opens the database next finds the turn
            log.error(
                "an attempt ended unexpectedly",
                turn_id=fence.turn_id,
                attempt=fence.attempt,
                exception=error_chain(exc),
            )
            return await self._give_back(fence, has_crashed=True)
        if attempt.has_many_deltas:
            await self._fold(attempt.claim)
        return False

    def _claim_turn(self, unit: Unit, turn_id: TurnId, parts: WorkerParts) -> turn.Claim | None:
        if not self.permit(unit, parts.worker_id):
            return None
        return turn.claim(unit, turn_id, parts.worker_id)

    async def _claim(self, turn_id: TurnId) -> Attempt | None:
        async def claim() -> Attempt | None:
            parts = self.parts  # of this try: the worker may have been given another name since the last one
            found = await parts.database.transaction(lambda unit: self._claim_turn(unit, turn_id, parts), name="claim")
            return None if found is None else Attempt(parts, found)

        try:
            attempt = await retry_while_unavailable(claim)
        except (StoreUnavailable, NotNow):
            return None  # closed, or not for this worker: whoever looks next finds the turn
        if attempt is not None:
            attempt.look()
        return attempt

    async def _give_back(self, fence: turn.Fence, *, has_crashed: bool) -> bool:
        """No reader may hang on a turn that nothing runs. False: not ours to give."""
        give_back = partial(turn.give_back, fence=fence, has_crashed=has_crashed)
        try:
            return await retry_while_unavailable(lambda: self.parts.database.transaction(give_back, name="give_back"))
        except StoreUnavailable:
            return False  # closed: whoever opens the database next finds the turn

    async def _fold(self, claim: turn.Claim) -> None:
        """The text of a turn that ended is kept in a few rows; readers in the middle get just the rest."""
        fence = claim.fence
        after: int | None = claim.turn.first_event
        try:
            while after is not None:
                after = await self.parts.database.transaction(
                    partial(events.fold_parts, session_id=fence.session_id, turn_id=fence.turn_id, after=after),
                    name="fold",
                )
        except StoreUnavailable as exc:
            log.info("folding left for later", turn_id=fence.turn_id, error=str(exc))
