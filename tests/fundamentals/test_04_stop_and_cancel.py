"""Stop ends a turn, cancel ends a task. Both reach the running code, and tell what really happened."""

import asyncio
from collections.abc import Callable
from typing import Any

from pydantic_ai import Agent, Tool

from outlast import Outlast, Session, hints
from outlast.testing import ScriptedModel, call, gate, text

Start = Callable[..., Outlast[Any, Any]]


class Dig:
    """A tool that digs until it is cancelled, or until it may end; it cleans up in either case."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.is_clean = False

    async def dig(self) -> str:
        try:
            self.begun.set()
            await self.may_end.wait()
            return "a hole"
        finally:
            self.is_clean = True


async def first_words(session: Session) -> None:
    async with session.events() as stream:
        async for event in stream:
            if event.type == "part.delta":
                return


async def test_stop_keeps_what_was_said(start: Start) -> None:
    """It returns when the turn has ended, with what there is (D5, P6)."""
    never = asyncio.Event()
    async with start(Agent(ScriptedModel([[text("Once upon"), gate(never), text(" a time")]]))) as outlast:
        session = await outlast.sessions.create()
        await session.send("Tell a story.")
        await first_words(session)
        outcome = await session.stop()
        assert outcome is not None
        assert (outcome.state, outcome.text) == ("stopped", "Once upon")
        assert await session.stop() is None


async def test_stop_reaches_the_tools_that_run(start: Start) -> None:
    """The model is told with its next request that the call did not come to its end (D5)."""
    work = Dig()
    async with start(Agent(ScriptedModel([call("dig"), "Then not."]), tools=[work.dig])) as outlast:
        session = await outlast.sessions.create()
        await session.send("Dig a hole.")
        await work.begun.wait()
        outcome = await session.stop()
        assert work.is_clean
        assert outcome is not None
        assert [(each.tool, each.outcome) for each in outcome.calls] == [("dig", "interrupted")]
        assert (await session.ask("What now?")).text == "Then not."


async def test_after_a_stop_nothing_starts_until_a_person_says_so(start: Start) -> None:
    """What waits stays and is shown; `resume`, or a new message, goes on (D5)."""
    work = Dig()
    async with start(Agent(ScriptedModel([call("dig"), "A pond."]), tools=[work.dig])) as outlast:
        session = await outlast.sessions.create()
        await session.send("Dig a hole.")
        await work.begun.wait()
        queued = await session.send("Then a pond.", when_busy="queue")
        await session.stop()
        assert (await session.refresh()).state == "held"
        assert [each.text for each in await session.inbox()] == ["Then a pond."]
        assert await session.resume() is not None
        assert (await queued.outcome()).text == "A pond."


async def test_cancel_ends_a_task_and_says_what_became_of_it(start: Start) -> None:
    """The code is cancelled first; the answer is the truth, and wakes the session like any other end (B6)."""
    work = Dig()
    dig = Tool(work.dig, metadata=hints(budget=0.02))
    async with start(Agent(ScriptedModel([call("dig"), "It goes on.", "Then not."]), tools=[dig])) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Dig a hole.")).outcome()
        (task,) = await session.tasks()
        canceled = await outlast.tasks.cancel(task.id)
        assert (canceled.state, work.is_clean) == ("canceled", True)
        outcome = await session.settled()
        assert outcome is not None
        assert outcome.text == "Then not."


async def test_work_that_is_done_before_the_cancel_has_succeeded(start: Start) -> None:
    """A cancel is a wish; whoever commits first is right (B6, P3)."""
    work = Dig()
    dig = Tool(work.dig, metadata=hints(budget=0.02))
    async with start(Agent(ScriptedModel([call("dig"), "It goes on.", "A hole."]), tools=[dig])) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Dig a hole.")).outcome()
        (task,) = await session.tasks()
        work.may_end.set()
        await outlast.tasks.wait(task.id)
        assert (await outlast.tasks.cancel(task.id)).state == "succeeded"
        await session.settled()


async def test_stop_leaves_tasks_alone_unless_it_is_told_to_cascade(start: Start) -> None:
    """A stopped conversation does not stop the work that it has begun (D5)."""
    work = Dig()
    dig = Tool(work.dig, metadata=hints(budget=0.02))
    async with start(Agent(ScriptedModel([call("dig"), "It goes on."]), tools=[dig])) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Dig a hole.")).outcome()
        await session.stop()
        assert [each.state for each in await session.tasks()] == ["running"]
        await session.stop(cascade=True)
        (task,) = await session.tasks()
        assert (await outlast.tasks.wait(task.id)).state == "canceled"
