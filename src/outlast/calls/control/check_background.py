"""`check_background`: what the model sees of its background work, waits for, answers and cancels."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field
from pydantic_ai import Tool
from pydantic_ai.exceptions import ToolFailed
from pydantic_core import to_json

from outlast.calls.call import RunningCall
from outlast.calls.control import child_view, waiting
from outlast.calls.control.parts import ControlParts, this_call
from outlast.errors import Conflict, Forbidden, InvalidInput
from outlast.ids import SessionId, TaskId
from outlast.store.database import retry_while_unavailable
from outlast.store.repositories import family, inputs, spawned, tasks
from outlast.store.repositories.stored_task import Task
from outlast.store.unit import Unit
from outlast.tool_hints import hints
from outlast.transitions import cancel as cancel_moves
from outlast.transitions import sub_sessions
from outlast.transitions.sessions.constraints import chain_of
from outlast.transitions.tasks import open_request, requests

_INLINE = 16 * 1024
_CANCEL_SECONDS = 2.0
_LISTED = 100
_NOT_CANCELED = "Simulated: this session is a dry run, so nothing was cancelled."
_NOT_ANSWERED = "Simulated: this session is a dry run, so nothing was answered."
_ANSWERED = "Answered: it goes on, and its end will be told to you here."
_MODEL = "the model"
_PARENT = "the model of a parent session"
_Reply = str | bool | int | float | dict[str, Any] | list[Any] | None
_UNKNOWN = "There is no task {id!r} in this conversation. List the tasks with check_background(list=true)."


def check_background(parts: ControlParts) -> Tool[Any]:
    """Run again after a crash it looks again; a cancel that is asked for twice is asked for once, and of an answer that
    was given already it says so.
    """
    control = BackgroundControl(parts)

    async def check_background(
        task_id: Annotated[str | list[str] | None, Field(description="One task or several. Leave out to list.")] = None,
        wait_seconds: Annotated[float, Field(description="Wait so long for the end (0-300). 0 = only look.")] = 60,
        cancel: Annotated[bool, Field(description="Cancel the task instead of waiting for it.")] = False,
        reply: Annotated[_Reply, Field(description="Answer the question that the one task asks.")] = None,
        list: Annotated[bool, Field(description="List every open or unread task of this conversation.")] = False,
    ) -> dict[str, Any]:
        """Look at background tasks: list, wait for, answer or cancel them. Reading an outcome does not consume it."""
        if list and (task_id is not None or cancel):
            raise ToolFailed("Either list=true alone, or task_id with wait_seconds or cancel=true.")
        if cancel and task_id is None:
            raise ToolFailed("Say which task to cancel: check_background(task_id=..., cancel=true).")
        if reply is not None:
            if cancel or list or not isinstance(task_id, str):
                raise ToolFailed("Answer one task at a time: check_background(task_id=..., reply=...).")
            return await control.reply(this_call(), TaskId(task_id), reply)
        if task_id is None:
            return await control.check(this_call(), None, wait_seconds=0, cancel=False)
        ids = [task_id] if isinstance(task_id, str) else task_id
        if not ids:
            raise ToolFailed("Give at least one task_id, or list=true.")
        wait = waiting.clamped(wait_seconds)
        return await control.check(this_call(), [TaskId(each) for each in ids], wait_seconds=wait, cancel=cancel)

    return Tool(check_background, takes_ctx=False, metadata=hints(idempotent=True, budget=None))


class BackgroundControl:
    """Looks at the tasks of the session whose call runs, and at no others."""

    def __init__(self, parts: ControlParts) -> None:
        self._parts = parts

    async def check(
        self, call: RunningCall, task_ids: Sequence[TaskId] | None, *, wait_seconds: float, cancel: bool
    ) -> dict[str, Any]:
        """List, wait, or cancel. Whatever has ended is told now, so its wake is withdrawn with this result."""
        if task_ids is None:
            found = await self._parts.read(lambda connection: _open_or_unread(connection, call.session_id))
        else:
            found = await self._get(call.session_id, task_ids)
            if cancel and await self._is_dry_run(call.session_id):
                return {"type": "dry_run", "tasks": [self._describe(task) for task in found], "message": _NOT_CANCELED}
            if cancel:
                await self._cancel(found)
            seconds, is_enough = (_CANCEL_SECONDS, _is_over) if cancel else (wait_seconds, _is_over_or_asks)
            found = await waiting.until_over(self._parts, call, task_ids, seconds, is_enough)
        with_files = await self._with_files(call.session_id)
        call.told.extend(task.id for task in found if task.is_over and task.id not in with_files)
        children = {} if task_ids is None else await self._children(found)
        return {"tasks": [{**self._describe(task), **children.get(task.id, {})} for task in found]}

    async def _children(self, found: Sequence[Task]) -> dict[TaskId, dict[str, Any]]:
        """What the sub-sessions among them have said last, and what they ask, while they go on."""
        open_ones = [task for task in found if not task.is_over and sub_sessions.CHILD in task.links]
        return await self._parts.read(lambda db: {task.id: child_view.view(db, task) for task in open_ones})

    async def reply(self, call: RunningCall, task_id: TaskId, value: Any) -> dict[str, Any]:
        """The answer of the model to a question; approvals and connections are for people."""
        task = await self._own_or_below(call.session_id, task_id)
        if await self._is_dry_run(call.session_id):
            return {"type": "dry_run", "tasks": [self._describe(task)], "message": _NOT_ANSWERED}
        by = _MODEL if task.session_id == call.session_id else _PARENT
        answer = partial(
            requests.answer,
            task_id=task_id,
            value=value,
            owner_id=task.owner_id,
            by=by,
            by_kind="model",
            mask=call.secrets.mask,
        )
        try:
            answered = await retry_while_unavailable(partial(self._parts.database.transaction, answer, name="reply"))
        except (Conflict, Forbidden, InvalidInput) as exc:
            raise ToolFailed(str(exc)) from exc
        return {"tasks": [self._describe(answered)], "message": _ANSWERED}

    async def _with_files(self, session_id: SessionId) -> set[TaskId | None]:
        """Tasks whose wakes carry more than is told here: those are not withdrawn."""
        found = await self._parts.read(lambda connection: inputs.waiting(connection, session_id))
        return {each.task_id for each in found if each.body.get("content")}

    async def _get(self, session_id: SessionId, task_ids: Sequence[TaskId]) -> list[Task]:
        """Unknown ids and other sessions' ids get the same answer."""

        def read(connection: sa.Connection) -> list[Task]:
            found = [tasks.get(connection, each) for each in task_ids]
            for task_id, task in zip(task_ids, found, strict=True):
                if task is None or task.session_id != session_id:
                    raise ToolFailed(_UNKNOWN.format(id=task_id))
            return spawned.with_places(connection, [task for task in found if task is not None])

        return await self._parts.read(read)

    async def _own_or_below(self, session_id: SessionId, task_id: TaskId) -> Task:
        """A task of this session or of one that works for it, at any depth."""

        def read(connection: sa.Connection) -> Task:
            task = tasks.get(connection, task_id)
            within = None if task is None else [task.session_id, *family.ancestors(connection, task.session_id)]
            if task is None or within is None or session_id not in within:
                raise ToolFailed(_UNKNOWN.format(id=task_id))
            return task

        return await self._parts.read(read)

    async def _is_dry_run(self, session_id: SessionId) -> bool:
        return (await self._parts.read(lambda connection: chain_of(connection, session_id))).is_dry_run

    async def _cancel(self, found: Sequence[Task]) -> None:
        for task in found:
            task_id, owner_id = task.id, task.owner_id

            def cancel(unit: Unit, task_id: TaskId = task_id, owner_id: str = owner_id) -> Task:
                return cancel_moves.request(unit, task_id, owner_id=owner_id)

            await retry_while_unavailable(partial(self._parts.database.transaction, cancel, name="cancel"))

    def _describe(self, task: Task) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "task_id": task.id,
            "tool": task.tool,
            "title": task.title,
            "state": task.state.value,
            "age_seconds": round(((task.ended_at or self._parts.clock.now()) - task.since).total_seconds(), 1),
            "place": task.place,
            "progress": task.progress,
            "detail": task.detail,
        }
        if task.cancel_requested_at is not None and not task.is_over:
            entry["cancel"] = "requested, not confirmed yet: it may still finish"
        entry["asks"] = child_view.asks_of(task)
        if task.settled is not None:
            entry["settled"] = task.settled
        if task.error is not None:
            entry["error"] = task.error
        elif task.is_over:
            entry |= _result_fields(task)
        return {name: value for name, value in entry.items() if value is not None}


def _is_over(task: Task) -> bool:
    return task.is_over


def _is_over_or_asks(task: Task) -> bool:
    """What asks a question may wait for the very model that waits here."""
    return task.is_over or (open_request.is_open(task) and (task.request or {}).get("kind") == "question")


def _result_fields(task: Task) -> dict[str, Any]:
    text = task.result if isinstance(task.result, str) else to_json(task.result).decode()
    if len(text) <= _INLINE:
        return {"result": task.result}
    return {"result_characters": len(text), "read_with": f"read_output(id={task.id!r}, what='result')"}


def _open_or_unread(connection: sa.Connection, session_id: SessionId) -> list[Task]:
    """Every open task, and those that ended while their wake still waits."""
    open_now = tasks.page(connection, session_id=session_id, is_open=True, limit=_LISTED)
    unread = [tasks.get(connection, each) for each in inputs.untold_tasks(connection, session_id)]
    return spawned.with_places(connection, [*open_now, *(task for task in unread if task is not None)])
