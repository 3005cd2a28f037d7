"""What calls that went on without their turn came to: found out, and recorded as the end of their tasks."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import structlog
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed, ToolFailedError, ToolRetryError

from outlast.calls import opened, outcomes
from outlast.calls.call import RunningCall
from outlast.calls.gates.connection import connection_needed, wait_for
from outlast.calls.questions import QuestionStopped
from outlast.calls.shared_usage import take_used
from outlast.calls.view import Viewed, Viewer
from outlast.calls.within.channel import CallChannel
from outlast.calls.within.code import really
from outlast.calls.within.files import has_files, separate
from outlast.errors import StoreUnavailable
from outlast.runs.owned import Owned
from outlast.store.database import Database, retry_while_unavailable
from outlast.store.group_commit import GroupCommit
from outlast.store.repositories import outputs, spending, tasks
from outlast.store.repositories.turns import Disposition
from outlast.store.unit import Unit
from outlast.transitions.tasks import many_tasks, operations, requests, task_moves
from outlast.transitions.tasks.many_tasks import Ending
from outlast.values import clean
from outlast.values.redact import redact
from outlast.wire.task_state import TaskState

log = structlog.get_logger("outlast.tasks")


class CallEnds:
    """Records each end, however long the store is away; ends that wake nobody are recorded together."""

    def __init__(self, database: Database, viewer: Viewer) -> None:
        self._database = database
        self._viewer = viewer
        self._together: GroupCommit[Ending, Disposition] = GroupCommit(database, many_tasks.end, name="task.end")

    async def record(self, owned: Owned) -> None:
        channel = owned.call.channel
        said: dict[str, Any] = {}
        if isinstance(channel, CallChannel):
            await channel.close()
            said = _last_words(channel)
        if await self._is_handed_out(owned) or await self._awaits_somebody(owned):
            return
        state, value, error = _truth(owned)
        viewed = await self._view(owned, value) if state is TaskState.SUCCEEDED else None
        await self.commit(owned, state, viewed=viewed, error=error, said=said)

    async def _awaits_somebody(self, owned: Owned) -> bool:
        """It asks for an approval; or it lacks a connection, and may be run again: its task waits without a worker."""
        ended, task_id = really(owned.call, owned.inner), owned.task_id
        wanted = None if ended.cancelled() else _wanted(owned.call, ended.exception())
        if task_id is None or wanted is None:
            return False
        kind, prompt, details, spec = wanted

        def wait(unit: Unit) -> bool:
            task = task_moves.locked(unit, task_id)
            if task is None or task.cancel_requested_at is not None or not (spec or task.may_run_again):
                return False
            left = task_moves.seconds_left(unit, task)
            runs = None if left is None else timedelta(seconds=left)
            asked = requests.request_of(unit, kind, prompt, details, secrets=owned.call.secrets, waits=None, runs=runs)
            return requests.wait(unit, task_id, asked, attempt=owned.attempt, spec=spec)

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
        await self.persist(lambda: self._database.transaction(hand_out, name="hand_out"))
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

    async def commit(
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
                await self.persist(lambda: self._database.transaction(count, name="usage"))
            return
        result = None if viewed is None else viewed.value
        content = () if viewed is None else viewed.content
        if owned.is_silent and used is None and not said and (viewed is None or viewed.file is None):
            ending = Ending(call.session_id, task_id, owned.attempt, state, result, error)
            await self.persist(lambda: self._together.ask(ending))
            return

        def end(unit: Unit) -> None:
            is_there = unit.try_lock(call.session_id)
            if used is not None:
                task_moves.add_usage(unit, task_id, call.owner_id, used)
            if not is_there:
                return
            if said and tasks.may_write(unit, task_id, owned.attempt):
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

        await self.persist(lambda: self._database.transaction(end, name="task.end"))

    async def persist(self, record: Callable[[], Awaitable[object]]) -> None:
        """To the end, however long the store is away; one that is closed leaves it to whoever opens it next."""
        try:
            await retry_while_unavailable(record)
        except StoreUnavailable as exc:
            log.warning("an end is left to the next start", error=str(exc))


class _Wanted(NamedTuple):
    """`spec`: what must be kept of a call of which nobody said that it may be run again."""

    kind: requests.Kind
    prompt: str
    details: Mapping[str, Any]
    spec: Mapping[str, Any] | None = None


def _wanted(call: RunningCall, error: BaseException | None) -> _Wanted | None:
    """What a call that has ended so waits for. An approval is for running it again: its code asks before it acts."""
    if isinstance(error, ApprovalRequired):
        asked = None if call.approval is None else call.approval(error)
        return None if asked is None else _Wanted("approval", asked.prompt, asked.details, asked.spec)
    missing = connection_needed(error)
    wait = None if missing is None else wait_for(missing)
    return None if wait is None else _Wanted("connection", wait.prompt, wait.details)


def _last_words(channel: CallChannel) -> dict[str, Any]:
    said = {"artifacts": channel.artifacts or None, "progress": channel.last_progress}
    return {name: tasks.encode(value) for name, value in said.items() if value is not None}


def _truth(owned: Owned) -> tuple[TaskState, Any, dict[str, Any] | None]:
    """What the call came to in the end. After a cancel, a sync tool's own thread is what counts."""
    ended = really(owned.call, owned.inner)
    if owned.is_canceled and is_stopped(ended):
        return TaskState.CANCELED, None, None
    exc = asyncio.CancelledError() if ended.cancelled() else ended.exception()
    state, value, error = _read(owned, exc, ended.result if exc is None else None)
    left = opened.left_open(owned.call)
    if error is not None and left is not None:
        error = {**error, "message": f"{error['message']}\n{left}"}
    return state, value, error


def is_stopped(ended: asyncio.Task[Any] | Future[Any]) -> bool:
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
