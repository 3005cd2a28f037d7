"""Background work in tests: calls that outrun a tiny budget, gates for threads, and waits for what becomes of tasks."""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from outlast import Outlast, Session, Task
from outlast.ids import TaskId
from outlast.store.repositories import tasks
from outlast.store.repositories.stored_task import Task as StoredTask
from outlast.testing import texts_seen
from tests.support.logs.histories import return_of
from tests.support.turns.runtime import events_of

BUDGET = timedelta(milliseconds=20)
"""So short that a call that waits for a gate is always past it."""
PATIENCE = 60.0


class ThreadGate:
    """A place at which a sync tool waits, in its thread, until `open`."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._opened = threading.Event()

    def __call__(self) -> None:
        self._reached.set()
        assert self._opened.wait(PATIENCE), "nobody opened the gate"

    async def reached(self) -> None:
        assert await asyncio.to_thread(self._reached.wait, PATIENCE)

    def open(self) -> None:
        self._opened.set()


async def stored_task(outlast: Outlast[Any, Any], task_id: str) -> StoredTask:
    """A task with what programs are not shown of it."""
    found = await outlast.database.read(lambda connection: tasks.get(connection, TaskId(task_id)))
    assert found is not None
    return found


async def handle_of(session: Session, call_id: str) -> dict[str, Any]:
    """What the model got in place of the result of a call that was parked."""
    content: Any = return_of(call_id, await session.history()).content
    assert content["type"] == "background"
    return content


async def only_task(session: Session) -> Task:
    (task,) = await session.tasks()
    return task


async def task_that(session: Session, holds: Callable[[Task], bool]) -> Task:
    """The session's first task for which this holds, now or as soon as an event tells of it."""
    async with session.events() as stream:
        while True:
            for task in await session.tasks():
                if holds(task):
                    return task
            await anext(stream)


async def nth_event(session: Session, type_: str, count: int) -> None:
    """Wait until so many events of a type stand in the log."""
    async with session.events() as stream:
        async for event in stream:
            count -= event.type == type_
            if count == 0:
                return


async def parked(session: Session, tool: str | None = None) -> Task:
    """The running task of a tool, as soon as its call is parked."""
    return await task_that(session, lambda task: not task.is_over and tool in (None, task.tool))


async def woken_turns(session: Session) -> int:
    return sum(event.data["origin"] == "wake" for event in await events_of(session, "turn.queued"))


async def wakes_seen(session: Session) -> list[str]:
    """The text of every wake that stands in history."""
    return [text for text in texts_seen(await session.history()) if text.startswith("<background_result")]


async def parked_session(outlast: Outlast[Any, Any], text: str = "Go.", **options: Any) -> tuple[Session, Task]:
    """A new session after its first turn, in which one call was parked."""
    session = await outlast.sessions.create(**options)
    outcome = await (await session.send(text)).outcome()
    assert outcome.state == "completed", outcome
    return session, await only_task(session)
