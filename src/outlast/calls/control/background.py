"""The control tools' side of the runtime: what the model sees of its background work."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import sqlalchemy as sa
from pydantic_ai.exceptions import ToolFailed
from pydantic_core import to_json

from outlast.calls.call import RunningCall
from outlast.clock import Clock
from outlast.events.signals import Signals, task_topic, turn_topic
from outlast.ids import SessionId, TaskId
from outlast.store.database import Database, retry_while_unavailable
from outlast.store.files.file_store import FileStore
from outlast.store.repositories import inputs, outputs, tasks
from outlast.store.repositories.tasks import Task
from outlast.store.unit import Unit
from outlast.transitions import task_moves
from outlast.transitions.due import due_at_boundary

T = TypeVar("T")

_INLINE = 16 * 1024
_CANCEL_SECONDS = 2.0
_LISTED = 100
_UNKNOWN = "There is no task {id!r} in this conversation. List the tasks with check_background(list=true)."


class BackgroundControl:
    def __init__(self, database: Database, files: FileStore, signals: Signals, clock: Clock) -> None:
        self._database = database
        self._files = files
        self._signals = signals
        self._clock = clock

    async def look(
        self, call: RunningCall, task_ids: Sequence[TaskId] | None, *, wait_seconds: float, cancel: bool
    ) -> dict[str, Any]:
        """List, wait, or cancel. Whatever has ended is told now, so its wake is withdrawn with this result."""
        if task_ids is None:
            found = await self._read(lambda connection: _open_or_unread(connection, call.session_id))
        else:
            found = await self._get(call.session_id, task_ids)
            if cancel:
                await self._cancel(found)
            found = await self._wait(call, task_ids, _CANCEL_SECONDS if cancel else wait_seconds)
        with_files = await self._with_files(call.session_id)
        call.told.extend(task.id for task in found if task.is_over and task.id not in with_files)
        return {"tasks": [self._describe(task) for task in found]}

    async def _with_files(self, session_id: SessionId) -> set[TaskId | None]:
        """Tasks whose wakes carry more than is told here: those are not withdrawn."""
        waiting = await self._read(lambda connection: inputs.waiting(connection, session_id))
        return {each.task_id for each in waiting if each.body.get("content")}

    async def read(self, call: RunningCall, id: str, *, offset: int, length: int, what: str) -> dict[str, Any]:
        call_id, task = await self._resolve(call.session_id, id)
        if what != "result":
            piece = await self._read(
                lambda connection: outputs.read(connection, call.session_id, call_id, offset=offset, length=length)
            )
            if piece.total > 0 or what == "output":
                return _piece(piece.text, piece.offset, piece.next_offset, piece.total, cut=piece.cut)
        text = await self._result(call.session_id, call_id, task)
        part = text[offset : offset + length]
        return _piece(part, offset, min(offset + length, len(text)), len(text))

    async def _read(self, fn: Callable[[sa.Connection], T]) -> T:
        """The turn waits for the database: that this was away is nothing the model could do anything about."""
        return await retry_while_unavailable(lambda: self._database.read(fn))

    async def _get(self, session_id: SessionId, task_ids: Sequence[TaskId]) -> list[Task]:
        """Unknown ids and other sessions' ids get the same answer."""

        def read(connection: sa.Connection) -> list[Task | None]:
            return [tasks.get(connection, each) for each in task_ids]

        found = await self._read(read)
        for task_id, task in zip(task_ids, found, strict=True):
            if task is None or task.session_id != session_id:
                raise ToolFailed(_UNKNOWN.format(id=task_id))
        return [task for task in found if task is not None]

    async def _cancel(self, found: Sequence[Task]) -> None:
        for task in found:
            task_id, owner_id = task.id, task.owner_id

            def cancel(unit: Unit, task_id: TaskId = task_id, owner_id: str = owner_id) -> Task:
                return task_moves.request_cancel(unit, task_id, owner_id=owner_id)

            await retry_while_unavailable(partial(self._database.transaction, cancel, name="cancel"))

    async def _wait(self, call: RunningCall, task_ids: Sequence[TaskId], seconds: float) -> list[Task]:
        """Until all have ended, the time is over, or something for the running turn arrived."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        topics = [task_topic(each) for each in task_ids]
        if call.turn_id is not None:
            topics.append(turn_topic(call.turn_id))
        subscription = self._signals.subscribe(*topics)
        while True:
            found = await self._get(call.session_id, task_ids)
            left = end - loop.time()
            if left <= 0 or all(task.is_over for task in found) or await self._has_input(call.session_id, task_ids):
                return found
            await subscription.wait(min(left, 1.0))

    async def _has_input(self, session_id: SessionId, task_ids: Sequence[TaskId]) -> bool:
        waiting = await self._read(lambda connection: inputs.waiting(connection, session_id))
        return any(each.task_id not in task_ids for each in due_at_boundary(waiting))

    async def _resolve(self, session_id: SessionId, id: str) -> tuple[str, Task | None]:
        def read(connection: sa.Connection) -> tuple[Task | None, bool]:
            task = tasks.get(connection, TaskId(id)) or tasks.of_call(connection, session_id, id)
            is_known = outputs.total(connection, session_id, id) > 0
            return task, is_known or outputs.result_file(connection, session_id, id) is not None

        task, is_known = await self._read(read)
        if task is not None and task.session_id == session_id and task.call_id is not None:
            return task.call_id, task
        if is_known:
            return id, None
        raise ToolFailed(f"There is no output or long result of {id!r} in this conversation.")

    async def _result(self, session_id: SessionId, call_id: str, task: Task | None) -> str:
        file = await self._read(lambda connection: outputs.result_file(connection, session_id, call_id))
        if file is not None:
            return (await retry_while_unavailable(lambda: self._files.get(file))).decode()
        if task is None or not task.is_over:
            raise ToolFailed(f"{call_id!r} has no result yet.")
        return task.result if isinstance(task.result, str) else to_json(task.result).decode()

    def _describe(self, task: Task) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "task_id": task.id,
            "tool": task.tool,
            "title": task.title,
            "state": task.state.value,
            "age_seconds": round(((task.ended_at or self._clock.now()) - task.since).total_seconds(), 1),
            "progress": task.progress,
            "detail": task.detail,
        }
        if task.cancel_requested_at is not None and not task.is_over:
            entry["cancel"] = "requested, not confirmed yet: it may still finish"
        if task.settled is not None:
            entry["settled"] = task.settled
        if task.error is not None:
            entry["error"] = task.error
        elif task.is_over:
            entry |= _result_fields(task)
        return {name: value for name, value in entry.items() if value is not None}


def _result_fields(task: Task) -> dict[str, Any]:
    text = task.result if isinstance(task.result, str) else to_json(task.result).decode()
    if len(text) <= _INLINE:
        return {"result": task.result}
    return {"result_characters": len(text), "read_with": f"read_output(id={task.id!r}, what='result')"}


def _open_or_unread(connection: sa.Connection, session_id: SessionId) -> list[Task]:
    """Every open task, and those that ended while their wake still waits."""
    open_now = tasks.page(connection, session_id=session_id, is_open=True, limit=_LISTED)
    unread = [tasks.get(connection, each) for each in inputs.untold_tasks(connection, session_id)]
    return [*open_now, *(task for task in unread if task is not None)]


def _piece(text: str, offset: int, next_offset: int, total: int, *, cut: int = 0) -> dict[str, Any]:
    piece: dict[str, Any] = {"text": text, "offset": offset, "characters_total": total}
    if cut:
        piece["left_out"] = f"{cut} characters before this are no longer kept"
    if next_offset < total:
        piece["next_offset"] = next_offset
    return piece
