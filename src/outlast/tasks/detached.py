"""Calls that outlive their turn in this process: owned, watched, and their real end recorded."""

import asyncio
from datetime import timedelta
from typing import Any

import structlog
from pydantic_core import from_json, to_json

from outlast.calls.hook import Unconfirmed, really
from outlast.ids import TaskId
from outlast.store.database import Database
from outlast.store.tasks import TaskState
from outlast.tasks import service
from outlast.tools import outcomes
from outlast.tools.redact import redact

_BODY = 4_096
log = structlog.get_logger("outlast.tasks")


class DetachedCalls:
    """Holds every call that was told to cancel and has not ended."""

    def __init__(self, database: Database, *, abandon_after: timedelta) -> None:
        self._database = database
        self._abandon_after = abandon_after.total_seconds()
        self._watchers: set[asyncio.Task[None]] = set()

    def own(self, unconfirmed: Unconfirmed, task_id: TaskId | None) -> None:
        """From now on this call's end is told by its task; without one (a lost attempt) only by the log."""
        name = f"detached {unconfirmed.call.tool} {unconfirmed.call.call_id}"
        watcher = asyncio.create_task(self._watch(unconfirmed, task_id), name=name)
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)

    async def close(self) -> None:
        """At shutdown: coroutines are cancelled again; a thread that still runs is left behind and said so."""
        watchers = set(self._watchers)
        for watcher in watchers:
            watcher.cancel()
        if watchers:
            await asyncio.wait(watchers)

    async def _watch(self, unconfirmed: Unconfirmed, task_id: TaskId | None) -> None:
        try:
            if not await self._is_over(unconfirmed, self._abandon_after):
                await self._tell(task_id, TaskState.FAILED, error=service.ABANDONED)
                await self._is_over(unconfirmed, None)
        except asyncio.CancelledError:
            unconfirmed.inner.cancel()
            log.warning("left behind at shutdown", tool=unconfirmed.call.tool, call_id=unconfirmed.call.call_id)
            return
        await self._tell(task_id, *_truth(unconfirmed))

    async def _is_over(self, unconfirmed: Unconfirmed, seconds: float | None) -> bool:
        waited = {asyncio.ensure_future(asyncio.wrap_future(each)) for each in unconfirmed.call.busy_threads()}
        if not unconfirmed.inner.done():
            waited.add(unconfirmed.inner)
        if not waited:
            return True
        _, pending = await asyncio.wait(waited, timeout=seconds)
        return not pending

    async def _tell(self, task_id: TaskId | None, state: TaskState, result: Any = None, error: Any = None) -> None:
        if task_id is not None:
            await self._database.transaction(
                lambda unit: service.end(unit, task_id, state, attempt=1, result=result, error=error),
                name="task.end",
            )


def _truth(unconfirmed: Unconfirmed) -> tuple[TaskState, Any, Any]:
    """What the call came to in the end: its thread's result counts when it ran in one."""
    ended = really(unconfirmed.call, unconfirmed.inner)
    if ended.cancelled():
        return TaskState.CANCELED, None, None
    exc = ended.exception()
    if exc is not None:
        return TaskState.FAILED, None, {"kind": "tool_error", "message": redact(str(exc))}
    return TaskState.SUCCEEDED, _storable(ended.result()), None


def _storable(value: Any) -> Any:
    """Small values as they are; anything else in a few words (the task is silent, nobody waits for the body)."""
    try:
        body = to_json(outcomes.normalise(value))
    except (ValueError, RecursionError):
        return "(a value that cannot be stored)"
    return from_json(body) if len(body) <= _BODY else body[:_BODY].decode(errors="replace")
