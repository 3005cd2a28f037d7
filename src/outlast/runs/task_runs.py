"""The tasks that a worker runs: claimed several at once, each started in a coroutine of its own."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import structlog

from outlast.calls import outcomes
from outlast.errors import OutlastError, StoreUnavailable
from outlast.ids import TaskId
from outlast.runs.expected import ExpectedClaims
from outlast.runs.kinds.registry import STARTS
from outlast.runs.owned import SignalLatch
from outlast.runs.worker_parts import WorkerParts
from outlast.store.database import retry_while_unavailable
from outlast.store.group_commit import GroupCommit, LeftOut
from outlast.store.outbox import Work
from outlast.store.unit import Unit
from outlast.transitions.tasks import many_tasks
from outlast.transitions.tasks.many_tasks import Claimed, NotNow, Permit
from outlast.values.redact import error_chain

log = structlog.get_logger("outlast.engine")


def _nobody_waits() -> None:
    return


class TaskRuns:
    """Of one worker. A call that goes on after its turn let go of it is not among them, and takes no place."""

    def __init__(self, parts: Callable[[], WorkerParts], permit: Permit) -> None:
        self._parts = parts
        self._permit = permit
        self._starting: dict[str, asyncio.Task[None]] = {}
        """Until the tool of the task runs."""
        self._running: dict[str, asyncio.Task[Any]] = {}
        """The tools that run; their ends are told by whoever owns their calls."""
        self.expected = ExpectedClaims(parts)
        self._handed_again: set[str] = set()
        """Tasks, while they were being claimed: what kept them from it may be over."""
        self._is_leaving = False
        self._when_free: Callable[[], None] = _nobody_waits
        self._claims: GroupCommit[TaskId, tuple[Claimed, WorkerParts] | None] = GroupCommit(
            parts().database, self._claim, name="task.claim"
        )

    def __len__(self) -> int:
        """How many places are taken: what waits for an answer has none, and goes on without queueing."""
        return len(self._starting) + len(self._running) + len(self.expected) - self._asking

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._starting or task_id in self._running

    @property
    def _asking(self) -> int:
        questions = self._parts().calls.questions
        return 0 if questions is None else questions.asking.count(self.__contains__)

    @property
    def starting(self) -> Sequence[asyncio.Task[None]]:
        return list(self._starting.values())

    def when_free(self, call: Callable[[], None]) -> None:
        """Called from now on when a place becomes free."""
        self._when_free, questions = call, self._parts().calls.questions
        if questions is not None:
            questions.asking.when_more = call

    def leave(self) -> None:
        """Begin nothing any more: what is claimed from now on is given back."""
        self._is_leaving = True

    def begin(self, work: Work) -> None:
        """Start it, unless an attempt of it already runs here. What the commit did not claim is claimed."""
        task_id = TaskId(work.id)
        parts = self.expected.begin(work)
        if task_id in self:
            self._handed_again.add(task_id)
            return
        latch = parts.calls.parked.latch(task_id)
        claim = work.claim
        is_claimed = isinstance(claim, Claimed)
        self._start(task_id, self._run(claim, parts, latch) if is_claimed else self._claim_and_run(task_id, latch))

    async def take(self, task_id: TaskId) -> None:
        """Claim it and start it: claimed, or not there to claim, when this returns."""
        if task_id in self:
            raise NotNow(f"an earlier attempt of {task_id} still ends here")
        latch = self._parts().calls.parked.latch(task_id)
        try:
            answer = await self._claims.ask(task_id)
        except BaseException:
            latch.close()
            raise
        if answer is None:
            latch.close()
        else:
            claimed, parts = answer
            self._start(task_id, self._run(claimed, parts, latch))

    def _start(self, task_id: TaskId, run: Coroutine[Any, Any, None]) -> None:
        # Not in the context of whoever made it, who may be in the middle of a request, or of another call.
        context = self._parts().context.copy()
        self._starting[task_id] = asyncio.create_task(run, name=f"attempt {task_id}", context=context)

    def _claim(
        self, unit: Unit, task_ids: Sequence[TaskId], /, *, is_alone: bool
    ) -> Sequence[tuple[Claimed, WorkerParts] | OutlastError | LeftOut | None]:
        parts = self._parts()  # of this try: the worker may have been given another name since the last one
        try:
            found = many_tasks.claim(unit, task_ids, parts.worker_id, permit=self._permit, is_alone=is_alone)
        except NotNow as exc:
            return [exc for _ in task_ids]  # true of all of them: nobody need ask again alone
        return [each if each is None or isinstance(each, LeftOut) else (each, parts) for each in found]

    async def _claim_and_run(self, task_id: TaskId, latch: SignalLatch) -> None:
        answer = None
        try:
            answer = await retry_while_unavailable(lambda: self._claims.ask(task_id))
            while answer is None and task_id in self._handed_again:
                self._handed_again.discard(task_id)
                answer = await retry_while_unavailable(lambda: self._claims.ask(task_id))
        except StoreUnavailable:
            pass  # closed: whoever opens the database next finds the task
        except Exception as exc:
            log.error("a task could not be claimed", task_id=task_id, exception=error_chain(exc))
        if answer is None:
            latch.close()
            self._end(task_id)
        else:
            claimed, parts = answer
            await self._run(claimed, parts, latch)

    def _end(self, task_id: TaskId) -> None:
        self._starting.pop(task_id, None)
        self._running.pop(task_id, None)
        self._handed_again.discard(task_id)
        self._when_free()

    async def _run(self, claimed: Claimed, parts: WorkerParts, latch: SignalLatch) -> None:
        """From the claim on, its end is told by the task. Its place is free when its tool has ended."""
        task, inner = claimed.task, None
        try:
            if self._is_leaving:
                return await parts.calls.parked.give_back(task)
            inner = await STARTS[task.kind](parts, claimed, latch)
        except Exception as exc:
            log.error("a task could not be run", task_id=task.id, exception=error_chain(exc))
            failed = outcomes.internal_error(task.tool or task.kind, exc, parts.secrets)
            error = {"kind": "internal_error", "message": str(failed)}
            await parts.calls.parked.refuse(task.id, task.attempt, error)
        finally:
            latch.close()
            if inner is None:
                self._end(task.id)
            else:
                self._running[task.id] = inner
                del self._starting[task.id]
                inner.add_done_callback(lambda _: self._end(task.id))
