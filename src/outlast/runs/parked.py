"""Calls that go on in this process after their turn let go of them: owned, watched, their real end recorded."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from functools import partial
from typing import Any

import structlog

from outlast.calls.view import Viewer
from outlast.calls.within.channel import CallChannel
from outlast.calls.within.code import really
from outlast.clock import Clock
from outlast.containment import Contained
from outlast.errors import StoreUnavailable
from outlast.events.signals import Signals, task_topic
from outlast.ids import TaskId
from outlast.runs.call_ends import CallEnds, is_stopped
from outlast.runs.owned import Owned, SignalLatch
from outlast.store.database import Database, retry_while_unavailable
from outlast.store.repositories import tasks
from outlast.store.repositories.stored_task import Task
from outlast.store.repositories.turns import Disposition
from outlast.store.unit import Unit
from outlast.transitions import task_errors
from outlast.transitions.tasks import task_moves
from outlast.values.redact import error_chain, last_line
from outlast.wire.task_state import TaskState

log = structlog.get_logger("outlast.tasks")


class ParkedCalls:
    """Every call that outlives its turn on this worker."""

    def __init__(
        self, database: Database, signals: Signals, viewer: Viewer, clock: Clock, *, abandon_after: timedelta
    ) -> None:
        self._database = database
        self._signals = signals
        self._clock = clock
        self._abandon_after = abandon_after.total_seconds()
        self._owned: set[Owned] = set()
        self._at_work: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ends = CallEnds(database, viewer)

    def latch(self, task_id: TaskId) -> SignalLatch:
        """Listens from before a task is claimed, so that nobody need ask what was said between that and `own`."""
        return SignalLatch(self._signals, task_id)

    def __len__(self) -> int:
        return len(self._owned)

    def own(
        self,
        owned: Owned,
        *,
        deadline_in: float | None = None,
        progress_deadline: float | None = None,
        is_canceled: bool = False,
        is_unasked: bool = False,
    ) -> None:
        """From now on this call's end is told by its task. `is_unasked`: nobody can have asked it to cancel yet."""
        self._owned.add(owned)
        loop = asyncio.get_running_loop()
        if owned.task_id is not None:
            owned.unwatch = self._signals.watch(task_topic(owned.task_id), lambda: self._spawn(self._look(owned)))
        if deadline_in is not None:
            owned.deadline = loop.call_later(max(0.0, deadline_in), self._past, owned, task_errors.TIMED_OUT)
        if progress_deadline is not None:
            self._watch_progress(owned, progress_deadline, is_flagged=False)
        if is_canceled:
            self._begin_grace(owned)
        elif owned.task_id is not None and not is_unasked:
            self._spawn(self._look(owned))  # something may have been said before there was anybody to hear it
        if owned.inner.done() and not owned.call.busy_threads():
            self._spawn(self._ended(owned))
        else:
            owned.inner.add_done_callback(lambda _: self._spawn(self._ended(owned)))

    def tell_progress(self, task_id: TaskId, attempt: int, progress: dict[str, Any]) -> None:
        self._spawn(self._change(task_id, attempt, progress=tasks.encode(progress)))

    async def refuse(self, task_id: TaskId, attempt: int, error: dict[str, Any]) -> None:
        """A task that was claimed and could not begin: nobody runs it, so its end is told here."""

        def refuse(unit: Unit) -> Disposition:
            return task_moves.end(unit, task_id, TaskState.FAILED, attempt=attempt, error=error)

        await self._ends.persist(lambda: self._database.transaction(refuse, name="task.end"))

    async def give_back(self, claimed: Task) -> None:
        """A task that was claimed and is not begun, for this process is leaving."""
        give_back = partial(task_moves.give_back, claimed=claimed)
        await self._ends.persist(lambda: self._database.transaction(give_back, name="give_back"))

    def lose(self) -> None:
        """Others took this process for dead and tell what becomes of its calls: stop them, and record no cancel."""
        for owned in self._owned:
            owned.is_left = True
            self._cancel(owned)

    async def close(self, drain_seconds: float) -> None:
        """At shutdown: give calls the drain time; what still runs is cancelled and told at the next start."""
        running = {*self._at_work, *(each.inner for each in self._owned if not each.inner.done())}
        if running:
            await asyncio.wait(running, timeout=drain_seconds)
        for owned in self._owned:
            owned.is_left = not owned.inner.done() or bool(owned.call.busy_threads())
        self._closing.set_result(None)
        await self._finish()
        left = list(self._owned)
        for owned in left:
            self._forget(owned)
            owned.call.stop()
            owned.inner.cancel()
            if owned.call.busy_threads():
                log.warning("a thread is left behind at shutdown", tool=owned.call.tool, call_id=owned.call.call_id)
        if left:
            await asyncio.wait({each.inner for each in left}, timeout=1.0)
        await self._finish()
        for owned in list(self._owned):
            await self._let_go(owned)

    async def _finish(self) -> None:
        await asyncio.sleep(0)
        while self._at_work:
            await asyncio.wait(set(self._at_work))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        at_work = asyncio.create_task(work, name="parked call")
        self._at_work.add(at_work)
        at_work.add_done_callback(self._over)

    def _over(self, at_work: asyncio.Task[None]) -> None:
        self._at_work.discard(at_work)
        exc = None if at_work.cancelled() else at_work.exception()
        if exc is not None:
            log.error("the end of a call could not be recorded", exception=error_chain(exc))

    async def _look(self, owned: Owned) -> None:
        """Something was said about this task: if it was to cancel, or if it is over, its code must stop."""
        if owned.inner.done() or owned.is_canceled or owned.task_id is None:
            return
        task_id = owned.task_id
        try:
            task = await retry_while_unavailable(
                lambda: self._database.glance(lambda connection: tasks.get(connection, task_id))
            )
        except StoreUnavailable:
            return  # closed: what still runs is told to stop by that
        if task is None or not task.is_run_by(owned.attempt) or task.cancel_requested_at is not None:
            self._cancel(owned)
        elif task.deadline_at != owned.deadline_at:
            self._heed_deadline(owned, task)

    def _heed_deadline(self, owned: Owned, task: Task) -> None:
        if owned.deadline is not None:
            owned.deadline.cancel()
            owned.deadline = None
        owned.deadline_at = task.deadline_at
        if task.deadline_at is not None:
            left = max(0.0, (task.deadline_at - self._clock.now()).total_seconds())
            error = task_errors.NOT_ANSWERED if task.state is TaskState.AWAITING_INPUT else task_errors.TIMED_OUT
            owned.deadline = asyncio.get_running_loop().call_later(left, self._past, owned, error)

    def _cancel(self, owned: Owned) -> None:
        if not owned.is_canceled and not owned.inner.done():
            owned.call.stop()
            owned.inner.cancel()
            self._begin_grace(owned)

    def _begin_grace(self, owned: Owned) -> None:
        """It was told to cancel; told once: a second cancel would hit its clean-up."""
        owned.is_canceled = True
        timer = asyncio.get_running_loop().call_later(self._abandon_after, self._abandon, owned)
        owned.timers.append(timer)

    def _abandon(self, owned: Owned) -> None:
        self._spawn(self._ends.commit(owned, TaskState.FAILED, error=task_errors.ABANDONED))

    def _past(self, owned: Owned, error: dict[str, Any]) -> None:
        self._spawn(self._end_first(owned, error))

    async def _end_first(self, owned: Owned, error: dict[str, Any]) -> None:
        """A deadline: the first commit wins, and one that wins also stops the code."""
        await self._ends.commit(owned, TaskState.FAILED, error=error)
        self._cancel(owned)

    def _watch_progress(self, owned: Owned, seconds: float, *, is_flagged: bool) -> None:
        loop = asyncio.get_running_loop()
        owned.timers.append(loop.call_later(seconds, self._check_progress, owned, seconds, is_flagged))

    def _check_progress(self, owned: Owned, seconds: float, is_flagged: bool) -> None:
        channel = owned.call.channel
        last = channel.progressed_at if isinstance(channel, CallChannel) else None
        loop = asyncio.get_running_loop()
        if owned.call.is_asking or (last is not None and loop.time() - last < seconds):
            if is_flagged:
                self._spawn(self._flag(owned, None))
            self._watch_progress(owned, seconds, is_flagged=False)
        elif is_flagged:
            self._past(owned, task_errors.NO_PROGRESS)
        else:
            self._spawn(self._flag(owned, f"no progress for {seconds:g} s"))
            self._watch_progress(owned, seconds, is_flagged=True)

    async def _flag(self, owned: Owned, detail: str | None) -> None:
        if owned.task_id is not None:
            await self._change(owned.task_id, owned.attempt, detail=detail)

    async def _change(self, task_id: TaskId, attempt: int, **values: Any) -> None:
        """Progress that cannot be written is not worth waiting for: the next one, or the end, says more."""
        try:
            await self._database.transaction(
                lambda unit: task_moves.change(unit, task_id, attempt=attempt, **values), name="progress"
            )
        except StoreUnavailable as exc:
            log.info("progress left out", task_id=task_id, error=str(exc))

    async def _ended(self, owned: Owned) -> None:
        """The code is over (its threads too): record what it came to."""
        while (busy := owned.call.busy_threads()) and not self._closing.done():
            await asyncio.wait({asyncio.wrap_future(busy[0]), self._closing}, return_when=asyncio.FIRST_COMPLETED)
        try:
            if owned.call.is_waiting:
                return
            if not busy and not (owned.is_left and is_stopped(really(owned.call, owned.inner))):
                with Contained():
                    await self._ends.record(owned)
        except Exception as exc:
            log.error("the end of a call could not be kept as it was", call_id=owned.call.call_id, error=last_line(exc))
            await self._ends.commit(owned, TaskState.FAILED, error=task_errors.NOT_KEPT)
        finally:
            await self._let_go(owned)

    async def _let_go(self, owned: Owned) -> None:
        self._forget(owned)
        if isinstance(owned.call.channel, CallChannel):
            await owned.call.channel.close()
        if owned in self._owned:
            self._owned.discard(owned)
            if owned.when_over is not None:
                await owned.when_over()

    def _forget(self, owned: Owned) -> None:
        for timer in owned.timers:
            timer.cancel()
        if owned.deadline is not None:
            owned.deadline.cancel()
        if owned.unwatch is not None:
            owned.unwatch()
