"""What people and other programs do to an agent's work, for tests: each waits until it is asked for."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

from outlast.handles.connections import Connections
from outlast.handles.tasks import Tasks
from outlast.ids import SessionId
from outlast.wire.task import Task

SECONDS = 10.0
"""So long is waited for what a test expects."""
_Kind = Literal["approval", "question", "connection"]


async def waiting(
    tasks: Tasks,
    kind: _Kind,
    *,
    tool: str | None = None,
    session_id: SessionId | str | None = None,
    seconds: float = SECONDS,
) -> Task:
    """The oldest task that waits for an approval, an answer or a connection; of this tool, in this session and below.

    It is waited for. `AssertionError` says what there is instead.
    """

    async def look() -> Sequence[Task]:
        found = (await tasks.requests(session_id=session_id)).items
        return [each for each in found if each.request is not None and each.request.kind == kind]

    wanted = f"waits for {'an' if kind == 'approval' else 'a'} {kind}"
    return await _first(tasks, look, wanted, tool=tool, seconds=seconds)


async def approve(
    tasks: Tasks,
    *,
    tool: str | None = None,
    args: Mapping[str, Any] | None = None,
    by: str = "a test",
    seconds: float = SECONDS,
) -> Task:
    """Let the call run that waits for an approval, and wait for its end: `await approve(outlast.tasks, tool="pay")`."""
    task = await waiting(tasks, "approval", tool=tool, seconds=seconds)
    await tasks.approve(task.id, by=by, args=args)
    return await tasks.wait(task.id, seconds=seconds)


async def refuse(
    tasks: Tasks, *, tool: str | None = None, reason: str = "", by: str = "a test", seconds: float = SECONDS
) -> Task:
    """Keep the call from running that waits for an approval."""
    task = await waiting(tasks, "approval", tool=tool, seconds=seconds)
    return await tasks.refuse(task.id, by=by, reason=reason)


async def answer(
    tasks: Tasks, value: Any, *, tool: str | None = None, by: str = "a test", seconds: float = SECONDS
) -> Task:
    """Answer the question that a tool asks; gives its task as it goes on, which may ask again."""
    task = await waiting(tasks, "question", tool=tool, seconds=seconds)
    return await tasks.reply(task.id, value, by=by)


async def complete(
    tasks: Tasks, result: Any = None, *, error: str | None = None, tool: str | None = None, seconds: float = SECONDS
) -> Task:
    """Say how an operation ended that a tool has set going elsewhere."""
    task = await _first(
        tasks,
        lambda: tasks.list(kind="external", state="running"),
        "is an operation elsewhere",
        tool=tool,
        seconds=seconds,
    )
    return (await tasks.complete(task.id, result=result, error=error)).task


async def connect(tasks: Tasks, connections: Connections, value: str, *, seconds: float = SECONDS) -> Task:
    """Set the connection that a call waits for, and wait for the call's end."""
    task = await waiting(tasks, "connection", seconds=seconds)
    assert task.request is not None
    assert task.request.provider is not None
    await connections.set(task.request.provider, value)
    return await tasks.wait(task.id, seconds=seconds)


async def _first(
    tasks: Tasks,
    look: Callable[[], Awaitable[Sequence[Task]]],
    wanted: str,
    *,
    tool: str | None,
    seconds: float,
) -> Task:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        found = [each for each in await look() if tool is None or each.tool == tool]
        if found:
            return found[-1]
        if loop.time() >= end:
            there = [f"{each.tool} ({each.state})" for each in await tasks.list()] or ["none"]
            of_tool = "" if tool is None else f" of {tool!r}"
            raise AssertionError(f"No task{of_tool} {wanted} after {seconds:g} s. Tasks: {', '.join(there)}")
        await asyncio.sleep(0.02)
