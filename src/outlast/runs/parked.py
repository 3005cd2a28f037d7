"""Calls that go on in this process after their turn let go of them: owned, watched, their real end recorded."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed, ToolFailedError, ToolRetryError

from outlast.calls import opened, outcomes
from outlast.calls.call import RunningCall
from outlast.calls.gates.connection import connection_needed, wait_for
from outlast.calls.hook import really
from outlast.calls.questions import QuestionStopped
from outlast.calls.shared_usage import take_used
from outlast.calls.view import Viewed, Viewer
from outlast.calls.within.channel import CallChannel
from outlast.calls.within.files import has_files, separate
from outlast.clock import Clock
from outlast.containment import Contained
from outlast.errors import StoreUnavailable
from outlast.events.signals import Signals, task_topic
from outlast.ids import TaskId
from outlast.store.database import Database, retry_while_unavailable
from outlast.store.group_commit import GroupCommit
from outlast.store.repositories import outputs, spending, tasks
from outlast.store.repositories.stored_task import Task
from outlast.store.repositories.turns import Disposition
from outlast.store.unit import Unit
from outlast.transitions import task_errors
from outlast.transitions.tasks import many_tasks, operations, requests, task_moves
from outlast.transitions.tasks.many_tasks import Ending
from outlast.values import clean
from outlast.values.redact import error_chain, last_line, redact
from outlast.wire.task_state import TaskState

log = structlog.get_logger("outlast.tasks")


@dataclass(slots=True, eq=False)
class Owned:
    """One call that goes on. `task_id` None: its turn is over or lost, and only the log hears of its end."""

    call: RunningCall
    inner: asyncio.Task[Any]
    task_id: TaskId | None
    attempt: int = 1
    when_over: Callable[[], Awaitable[None]] | None = None
    is_silent: bool = False
    """Its end wakes nobody, so it may be recorded together with others."""
    is_canceled: bool = False
    is_left: bool = False
    """Cancelled because this process is leaving or was taken for dead: another one tells what became of it."""
    unwatch: Callable[[], None] | None = None
    deadline: asyncio.TimerHandle | None = None
    deadline_at: datetime | None = None
    """As it was last seen: while a call waits for an answer its own stands still."""
    timers: list[asyncio.TimerHandle] = field(default_factory=list[asyncio.TimerHandle])


class SignalLatch:
    """Hears what is said of a task before there is a call that could heed it."""

    def __init__(self, signals: Signals, task_id: TaskId) -> None:
        self._times = 0
        self.close = signals.watch(task_topic(task_id), self._hear)

    @property
    def has_heard(self) -> bool:
        """More than that the task was claimed, which this process itself says, once."""
        return self._times > 1

    def _hear(self) -> None:
        self._times += 1


class ParkedCalls:
    """Every call that outlives its turn on this worker."""

    def __init__(
        self, database: Database, signals: Signals, viewer: Viewer, clock: Clock, *, abandon_after: timedelta
    ) -> None:
        self._database = database
        self._signals = signals
        self._viewer = viewer
        self._clock = clock
        self._abandon_after = abandon_after.total_seconds()
        self._owned: set[Owned] = set()
        self._at_work: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ends: GroupCommit[Ending, Disposition] = GroupCommit(database, many_tasks.end, name="task.end")

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

        await self._persist(lambda: self._database.transaction(refuse, name="task.end"))

    async def give_back(self, claimed: Task) -> None:
        """A task that was claimed and is not begun, for this process is leaving."""
        give_back = partial(task_moves.give_back, claimed=claimed)
        await self._persist(lambda: self._database.transaction(give_back, name="give_back"))

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
        self._spawn(self._tell(owned, TaskState.FAILED, error=task_errors.ABANDONED))

    def _past(self, owned: Owned, error: dict[str, Any]) -> None:
        self._spawn(self._end_first(owned, error))

    async def _end_first(self, owned: Owned, error: dict[str, Any]) -> None:
        """A deadline: the first commit wins, and one that wins also stops the code."""
        await self._tell(owned, TaskState.FAILED, error=error)
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
            if not busy and not (owned.is_left and _is_stopped(really(owned.call, owned.inner))):
                with Contained():
                    await self._record(owned)
        except Exception as exc:
            log.error("the end of a call could not be kept as it was", call_id=owned.call.call_id, error=last_line(exc))
            await self._tell(owned, TaskState.FAILED, error=task_errors.NOT_KEPT)
        finally:
            await self._let_go(owned)

    async def _record(self, owned: Owned) -> None:
        channel = owned.call.channel
        said: dict[str, Any] = {}
        if isinstance(channel, CallChannel):
            await channel.close()
            said = _last_words(channel)
        if await self._is_handed_out(owned) or await self._awaits_connection(owned):
            return
        state, value, error = _truth(owned)
        viewed = await self._view(owned, value) if state is TaskState.SUCCEEDED else None
        await self._tell(owned, state, viewed=viewed, error=error, said=said)

    async def _awaits_connection(self, owned: Owned) -> bool:
        """It lacks a connection, and its tool may be run again: its task waits for it, without a worker."""
        ended, task_id = really(owned.call, owned.inner), owned.task_id
        missing = None if ended.cancelled() else connection_needed(ended.exception())
        wanted = None if missing is None else wait_for(missing)
        if task_id is None or wanted is None:
            return False

        def wait(unit: Unit) -> bool:
            task = task_moves.locked(unit, task_id)
            if task is None or not task.may_run_again or task.cancel_requested_at is not None:
                return False
            left = task_moves.seconds_left(unit, task)
            runs = None if left is None else timedelta(seconds=left)
            asked = requests.request_of(unit, "connection", wanted.prompt, wanted.details, waits=None, runs=runs)
            return requests.wait(unit, task_id, asked, attempt=owned.attempt)

        try:
            return await retry_while_unavailable(lambda: self._database.transaction(wait, name="wait"))
        except StoreUnavailable:
            return True  # closed: whoever opens it next finds a task whose worker is gone

    async def _is_handed_out(self, owned: Owned) -> bool:
        """Its code has left the work to something outside: its task goes on without a worker, and is completed."""
        ended, task_id = really(owned.call, owned.inner), owned.task_id
        if task_id is None or ended.cancelled() or not isinstance(ended.exception(), CallDeferred):
            return False
        hand_out = partial(operations.hand_out, task_id=task_id, attempt=owned.attempt)
        await self._persist(lambda: self._database.transaction(hand_out, name="hand_out"))
        return True

    async def _view(self, owned: Owned, value: Any) -> Viewed:
        plain, content = separate(value) if has_files(value) else (value, [])
        secrets = owned.call.secrets
        viewed = await self._viewer.view(owned.call, secrets.mask(plain))
        viewed = replace(viewed, value=opened.with_operations(owned.call, viewed.value))
        if not content:
            return viewed
        told = [secrets.mask(each) if isinstance(each, str) else each for each in content]
        return replace(viewed, content=await self._viewer.keep(owned.call, told))

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

    async def _tell(
        self,
        owned: Owned,
        state: TaskState,
        *,
        viewed: Viewed | None = None,
        error: dict[str, Any] | None = None,
        said: dict[str, Any] | None = None,
    ) -> None:
        """`said`: the last of what the call itself said of its task."""
        task_id, call, used = owned.task_id, owned.call, take_used(owned.call)
        if task_id is None:
            log.info("a call that nobody waits for ended", tool=call.tool, call_id=call.call_id, state=state.value)
            if used is not None:
                count = partial(spending.add_spent, owner_id=call.owner_id, spent=used)
                await self._persist(lambda: self._database.transaction(count, name="usage"))
            return
        result = None if viewed is None else viewed.value
        content = () if viewed is None else viewed.content
        if owned.is_silent and used is None and not said and (viewed is None or viewed.file is None):
            ending = Ending(call.session_id, task_id, owned.attempt, state, result, error)
            await self._persist(lambda: self._ends.ask(ending))
            return

        def end(unit: Unit) -> None:
            is_there = unit.try_lock(call.session_id)
            if used is not None:
                task_moves.add_usage(unit, task_id, call.owner_id, used)
            if not is_there:
                return
            if said and tasks.holds(unit, task_id, owned.attempt):
                tasks.set_values(unit, task_id, **said)
            if viewed is not None and viewed.file is not None and tasks.get(unit.connection, task_id) is not None:
                outputs.keep_result(unit, call.session_id, call.call_id, file=viewed.file, characters=viewed.characters)
            task_moves.end(
                unit,
                task_id,
                state,
                attempt=owned.attempt,
                result=result,
                error=error,
                content=content,
            )

        await self._persist(lambda: self._database.transaction(end, name="task.end"))

    async def _persist(self, record: Callable[[], Awaitable[object]]) -> None:
        """To the end, however long the store is away; one that is closed leaves it to whoever opens it next."""
        try:
            await retry_while_unavailable(record)
        except StoreUnavailable as exc:
            log.warning("an end is left to the next start", error=str(exc))


def _last_words(channel: CallChannel) -> dict[str, Any]:
    said = {"artifacts": channel.artifacts or None, "progress": channel.last_progress}
    return {name: tasks.encode(value) for name, value in said.items() if value is not None}


def _truth(owned: Owned) -> tuple[TaskState, Any, dict[str, Any] | None]:
    """What the call came to in the end. After a cancel, a sync tool's own thread is what counts."""
    ended = really(owned.call, owned.inner)
    if owned.is_canceled and _is_stopped(ended):
        return TaskState.CANCELED, None, None
    exc = asyncio.CancelledError() if ended.cancelled() else ended.exception()
    state, value, error = _read(owned, exc, ended.result if exc is None else None)
    left = opened.left_open(owned.call)
    if error is not None and left is not None:
        error = {**error, "message": f"{error['message']}\n{left}"}
    return state, value, error


def _is_stopped(ended: asyncio.Task[Any] | Future[Any]) -> bool:
    """By its cancel, also where only a thread could hear of that."""
    return ended.cancelled() or isinstance(ended.exception(), QuestionStopped)


def _read(
    owned: Owned, exc: BaseException | None, result: Callable[[], Any] | None
) -> tuple[TaskState, Any, dict[str, Any] | None]:
    secrets = owned.call.secrets
    if exc is None and result is not None:
        try:
            return TaskState.SUCCEEDED, outcomes.plain_value(result(), secrets), None
        except ToolFailed as failed:
            return TaskState.FAILED, None, {"kind": "internal_error", "message": str(failed)}
    if isinstance(exc, ToolFailedError | ToolRetryError | ToolFailed):
        return (
            TaskState.FAILED,
            None,
            {"kind": "tool_error", "message": secrets.mask(redact(clean.words_of(exc, most=None), cut=4_096))},
        )
    assert exc is not None
    if isinstance(exc, ApprovalRequired | CallDeferred):
        words = outcomes.NEEDS_APPROVAL if isinstance(exc, ApprovalRequired) else outcomes.HANDED_OUT
        return TaskState.FAILED, None, {"kind": "deferred_call", "message": words}
    failed = outcomes.internal_error(owned.call.tool, exc, secrets)
    return TaskState.FAILED, None, {"kind": "internal_error", "message": str(failed)}
