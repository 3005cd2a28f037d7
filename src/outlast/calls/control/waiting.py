"""Waiting inside a control tool: for tasks, but no longer than until something for the running turn arrives.

A turn that waits here for some time takes none of its owner's places meanwhile: those that it waits for may need them.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from functools import partial

import sqlalchemy as sa

from outlast.calls.call import RunningCall
from outlast.calls.control.parts import ControlParts
from outlast.events.signals import task_topic, turn_topic
from outlast.ids import SessionId, TaskId
from outlast.store.database import retry_while_unavailable
from outlast.store.repositories import inputs, tasks
from outlast.store.repositories.inputs import InputKind
from outlast.store.repositories.stored_task import Task
from outlast.transitions.turns import waiting_turn
from outlast.transitions.turns.due import due_at_boundary

LONGEST_WAIT = 300
_SHORT_SECONDS = 0.5
"""So long a wait is not worth a commit."""


def clamped(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_WAIT)


async def until_over(
    parts: ControlParts,
    call: RunningCall,
    task_ids: Sequence[TaskId],
    seconds: float,
    is_enough: Callable[[Task], bool] = lambda task: task.is_over,
) -> list[Task]:
    """The tasks as they are when all of them have come so far, the time is over, or the turn is needed elsewhere."""
    if call.turn_id is None:
        return await _until_over(parts, call, task_ids, seconds, is_enough, task_ids)
    with parts.waits.waiting(call.turn_id, task_ids) as awaited:
        return await _until_over(parts, call, task_ids, seconds, is_enough, awaited)


async def _until_over(
    parts: ControlParts,
    call: RunningCall,
    task_ids: Sequence[TaskId],
    seconds: float,
    is_enough: Callable[[Task], bool],
    awaited: Collection[TaskId],
) -> list[Task]:
    """`awaited`: what other calls of the turn wait for too, as it is at each moment. Their ends are told by them."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    topics = [task_topic(each) for each in task_ids]
    if call.turn_id is not None:
        topics.append(turn_topic(call.turn_id))
    subscription = parts.signals.subscribe(*topics)

    async def look(last: float) -> list[Task] | None:
        """None: this time is over, and there is more of it."""
        while True:
            found = await parts.read(partial(_get_all, task_ids=task_ids))
            left = min(last, end) - loop.time()
            if all(map(is_enough, found)) or await _has_input(parts, call.session_id, awaited):
                return found
            if left <= 0:
                return found if last >= end else None
            await subscription.wait(min(left, 1.0))

    found = await look(loop.time() + _SHORT_SECONDS)
    if found is not None:
        return found
    async with _without_place(parts, call):
        return await look(end) or []


def _get_all(connection: sa.Connection, task_ids: Sequence[TaskId]) -> list[Task]:
    found = [tasks.get(connection, each) for each in task_ids]
    return [task for task in found if task is not None]


async def _has_input(parts: ControlParts, session_id: SessionId, awaited: Collection[TaskId]) -> bool:
    """That something needs somebody is said to the model at once, also of what it waits for."""
    waiting = await parts.read(lambda connection: inputs.waiting(connection, session_id))
    due = due_at_boundary(waiting)
    return any(each.kind is InputKind.REQUEST or each.task_id not in awaited for each in due)


@asynccontextmanager
async def _without_place(parts: ControlParts, call: RunningCall) -> AsyncGenerator[None]:
    turn_id = call.turn_id
    if turn_id is None:
        yield
        return

    async def mark(is_waiting: bool) -> None:
        change = partial(waiting_turn.mark, session_id=call.session_id, turn_id=turn_id, is_waiting=is_waiting)
        await retry_while_unavailable(lambda: parts.database.transaction(change, name="turn.wait"))

    try:
        with parts.waits.lend(turn_id):
            await parts.waits.publish(turn_id, mark)
            yield
    finally:
        await asyncio.shield(asyncio.ensure_future(parts.waits.publish(turn_id, mark)))
