"""Stop where a tool does not confirm its cancel: it is owned, becomes a silent task, and its real end is told there."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from pydantic_ai import Tool
from structlog.testing import capture_logs

from outlast import Session, Task, hints
from outlast.store.repositories.stored_task import WakePolicy
from outlast.testing import call
from outlast.wire.task_state import TaskState
from tests.support.logs.histories import return_of
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.runtime import Runtime, event_types, events_of, wait_for_event
from tests.support.turns.stopping import goes_on, going_on, stop


async def stubborn_session(
    runtime: Runtime,
    ends: Callable[[], Awaitable[str]],
    check: Callable[[Session], Awaitable[None]],
    *,
    abandon_after: timedelta = timedelta(seconds=30),
) -> None:
    """Stop a turn whose tool swallows its cancel and then ends as `ends` says."""
    here = Checkpoint()

    async def grind() -> str:
        try:
            await here()
        except asyncio.CancelledError:
            return await ends()
        return "ground"

    async with runtime(going_on(call("grind", call_id="c1")), tools=[grind], abandon_after=abandon_after) as outlast:
        session = await outlast.sessions.create()
        await session.send("Grind.")
        await here.reached()
        await stop(session)
        (task,) = await session.tasks()
        assert (task.wake, task.call_id) == (WakePolicy.SILENT, "c1")
        assert task.is_cancel_requested
        assert task.id in str(return_of("c1", await session.history()).content)
        await goes_on(session)
        await check(session)


async def test_a_tool_that_swallows_its_cancel_becomes_a_silent_task_that_succeeds(runtime: Runtime) -> None:
    """A5, D5: nothing runs untracked; it may still finish, and then that is the truth. It wakes nobody."""
    release = asyncio.Event()

    async def finishes() -> str:
        await release.wait()
        return "ground anyway"

    async def check(session: Session) -> None:
        before = await event_types(session)
        assert [each.state for each in await session.tasks()] == [TaskState.RUNNING]
        release.set()
        await wait_for_event(session, "task.ended")
        (task,) = await session.tasks()
        assert (task.state, task.result) == (TaskState.SUCCEEDED, "ground anyway")
        assert (await event_types(session)).count("turn.queued") == before.count("turn.queued")

    await stubborn_session(runtime, finishes, check)


async def test_a_tool_that_is_cancelled_late_is_told_as_canceled(runtime: Runtime) -> None:
    """A5: the clean-up took longer than Stop waits."""
    release = asyncio.Event()

    async def gives_up() -> str:
        await release.wait()
        raise asyncio.CancelledError

    async def check(session: Session) -> None:
        release.set()
        await wait_for_event(session, "task.ended")
        (task,) = await session.tasks()
        assert task.state is TaskState.CANCELED

    await stubborn_session(runtime, gives_up, check)


async def test_a_tool_that_fails_late_is_told_as_failed(runtime: Runtime) -> None:
    """A2, A5: a tool that ends in an error has failed."""
    release = asyncio.Event()

    async def breaks() -> str:
        await release.wait()
        raise RuntimeError("the mill broke")

    async def check(session: Session) -> None:
        release.set()
        await wait_for_event(session, "task.ended")
        (task,) = await session.tasks()
        assert task.state is TaskState.FAILED
        assert task.error is not None
        assert task.error["kind"] == "internal_error"

    await stubborn_session(runtime, breaks, check)


async def test_a_tool_that_never_confirms_is_reported_as_abandoned(runtime: Runtime) -> None:
    """A5, B6: after the grace it is said to be abandoned; what it reaches later is kept as the late outcome."""
    release = asyncio.Event()

    async def finishes() -> str:
        await release.wait()
        return "far too late"

    async def check(session: Session) -> None:
        await wait_for_event(session, "task.ended")
        (task,) = await session.tasks()
        assert task.state is TaskState.FAILED
        assert task.error is not None
        assert task.error["kind"] == "abandoned"
        release.set()
        task = await late_end(session)
        assert task.late_outcome is not None
        assert task.late_outcome["result"] == "far too late"
        assert task.state is TaskState.FAILED
        assert len(await events_of(session, "task.ended")) == 1

    await stubborn_session(runtime, finishes, check, abandon_after=timedelta(milliseconds=20))


async def late_end(session: Session) -> Task:
    """The session's task, once it has a late outcome: no event tells of one."""
    while True:
        (task,) = await session.tasks()
        if task.late_outcome is not None:
            return task


@pytest.mark.parametrize("is_failing", [False, True])
async def test_a_sync_tool_in_a_thread_cannot_be_killed_and_is_owned(runtime: Runtime, is_failing: bool) -> None:
    """A5, D5: the turn stops at once; the thread's real end is told by its silent task."""
    release, is_running = threading.Event(), threading.Event()

    def compress() -> str:
        is_running.set()
        release.wait()
        if is_failing:
            raise OSError("disk full")
        return "compressed"

    model = going_on(call("compress", call_id="c1"))
    async with runtime(model, tools=[compress], abandon_after=timedelta(seconds=30)) as outlast:
        session = await outlast.sessions.create()
        await session.send("Compress.")
        await asyncio.to_thread(is_running.wait)
        await stop(session)
        (task,) = await session.tasks()
        assert (task.state, task.wake) == (TaskState.RUNNING, WakePolicy.SILENT)
        assert task.is_cancel_requested
        await goes_on(session)
        release.set()
        await wait_for_event(session, "task.ended")
        (task,) = await session.tasks()
        assert task.state is (TaskState.FAILED if is_failing else TaskState.SUCCEEDED)
        assert task.result == (None if is_failing else "compressed")


async def test_a_sync_tool_that_ends_within_the_grace_needs_no_task(runtime: Runtime) -> None:
    """A5, P6: its result is what happened, and the model is told so."""
    release, is_running = threading.Event(), threading.Event()

    def compress() -> str:
        is_running.set()
        release.wait()
        return "compressed"

    model = going_on(call("compress", call_id="c1"))
    async with runtime(model, tools=[compress], stop_grace=timedelta(seconds=30)) as outlast:
        session = await outlast.sessions.create()
        await session.send("Compress.")
        await asyncio.to_thread(is_running.wait)
        stopping = asyncio.create_task(session.stop())
        await wait_for_event(session, "session.held")
        release.set()
        await stopping
        part = return_of("c1", await session.history())
        assert (part.outcome, part.content) == ("success", "compressed")
        assert await session.tasks() == []
        await goes_on(session)


async def test_a_call_that_ran_into_its_deadline_is_watched_when_its_turn_was_stopped(runtime: Runtime) -> None:
    """A5: the model was told that it did not end in time; it still runs, and its end is not lost."""
    here, release = Checkpoint(), asyncio.Event()

    async def grind() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await release.wait()
        return "ground"

    tools = [Tool(grind, metadata=hints(budget=None, deadline=0.01)), here_as_tool(here)]
    model = going_on(call("grind", call_id="c1"), call("hold", call_id="c2"))
    with capture_logs() as logs:
        async with runtime(model, tools=tools) as outlast:
            session = await outlast.sessions.create()
            await session.send("Grind.")
            await here.reached()
            await stop(session)
            release.set()
            async with asyncio.timeout(60):
                while "c1" not in [each.get("call_id") for each in logs]:  # noqa: ASYNC110 - a log tells nobody
                    await asyncio.sleep(0.001)
            here.open()
            await goes_on(session)
    (ended,) = [each for each in logs if each.get("call_id") == "c1"]
    assert ended["state"] == "succeeded"


def here_as_tool(here: Checkpoint) -> Tool[None]:
    async def hold() -> None:
        await here()

    return Tool(hold)
