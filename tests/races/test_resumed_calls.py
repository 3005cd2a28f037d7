"""A turn that goes on in another process: what stands in history stands there once."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolReturnPart

from outlast import Outlast, Settings, hints
from outlast.testing import ScriptedModel, call, last_user_text, text, tool_returns
from tests.support.crashes.crash_copy import CrashCopy
from tests.support.logs.histories import return_of
from tests.support.turns.background import wakes_seen
from tests.support.turns.runtime import Runtime, events_of, wait_for_event


def river_agent(started: asyncio.Event) -> Agent[None, str]:
    agent = Agent(ScriptedModel([[text("Measuring."), call("measure", call_id="m1")], "Done."], by="history"))

    @agent.tool_plain
    async def measure() -> str:  # pyright: ignore[reportUnusedFunction]
        started.set()
        await asyncio.Event().wait()
        return "never reached"

    return agent


async def test_a_response_with_open_calls_is_stored_once(tmp_path: Path) -> None:
    """P2: a turn handed over in the middle of a call goes on from the stored response and does not store it again."""
    settings = Settings(drain=timedelta(0), stop_grace=timedelta(milliseconds=50))
    started = asyncio.Event()
    async with Outlast(river_agent(started), database=tmp_path / "app.db", settings=settings) as outlast:
        session = await outlast.sessions.create()
        await session.send("How high is the river?")
        await started.wait()

    async with Outlast(river_agent(started), database=tmp_path / "app.db", settings=settings) as outlast:
        session = await outlast.sessions.get(session.id)
        outcome = await session.settled()
        history = await session.history()
        events = await events_of(session)

    assert outcome is not None
    assert outcome.state == "completed"
    assert [message.kind for message in history] == ["request", "response", "request", "response"]
    assert outcome.usage.requests == sum(isinstance(message, ModelResponse) for message in history)
    told = [event.data["usage"] for event in events if event.type == "turn.completed"]
    assert [usage["requests"] for usage in told] == [2], "the response of the first attempt counts too"


async def test_a_call_that_ended_is_not_run_again_beside_one_in_flight(tmp_path: Path) -> None:
    """P2: its end stands in the log, though not yet in a request: the next process gives the model that result."""
    runs: list[str] = []
    told = asyncio.Event()

    async def quick() -> str:
        runs.append("quick")
        return "two metres"

    async def slow() -> str:
        runs.append("slow")
        await told.wait()
        return "never told"

    script = ScriptedModel([[call("quick", call_id="q1"), call("slow", call_id="s1")], "Done."], by="history")
    crash = CrashCopy(tmp_path / "app.db", tmp_path / "copy.db", "request", "before")
    together = timedelta(milliseconds=500)  # an end waits so long for the request, however busy the machine is
    async with Runtime(tmp_path / "app.db")(script, tools=[quick, slow], coalesce=together) as outlast:
        outlast.database.watcher = crash.watch
        session = await outlast.sessions.create()
        await session.send("How deep is the river?")
        assert (await wait_for_event(session, "call.ended")).data["call_id"] == "q1"
        told.set()  # the second end and the request that holds both go into one commit, which the copy has not
        await crash.made()
        await session.settled()
    assert sorted(runs) == ["quick", "slow"]

    async with Runtime(crash.copy)(script, tools=[quick, slow]) as outlast:
        session = await outlast.sessions.get(session.id)
        await session.settled()
        ends = await events_of(session, "call.ended")
        parts = [part for message in await session.history() for part in message.parts]

    assert sorted(runs) == ["quick", "slow"], "neither ran again"
    assert [event.data["call_id"] for event in ends] == ["q1", "s1"]
    answers = {part.tool_call_id: part.model_response_str() for part in parts if isinstance(part, ToolReturnPart)}
    assert answers["q1"] == "two metres"
    assert "may or may not have taken effect" in answers["s1"]


async def test_a_call_parked_right_before_a_crash_is_told_as_ended(tmp_path: Path) -> None:
    """P3, B1: the next process tells readers what the model is told: the call ended as a call, and is a task now."""

    async def survey() -> str:
        await asyncio.Event().wait()
        return "never reached"

    tool = Tool(survey, metadata=hints(budget=0.01))
    script = ScriptedModel([call("survey", call_id="s1"), "I will tell you.", "It was interrupted."], by="history")
    crash = CrashCopy(tmp_path / "app.db", tmp_path / "copy.db", "park", "after")
    async with Runtime(tmp_path / "app.db")(script, tools=[tool]) as outlast:
        outlast.database.watcher = crash.watch
        session = await outlast.sessions.create()
        await session.send("Survey the river.")
        await crash.made()

    async with Runtime(crash.copy)(script, tools=[tool]) as outlast:
        session = await outlast.sessions.get(session.id)
        await session.settled()
        ends = await events_of(session, "call.ended")
        tasks = await session.tasks()
        told = [part for message in await session.history() for part in message.parts]

    assert [(event.data["call_id"], event.data["task_id"]) for event in ends] == [("s1", tasks[0].id)]
    answers = [part.model_response_str() for part in told if isinstance(part, ToolReturnPart)]
    assert [tasks[0].id in answer for answer in answers] == [True], "and the model got its handle"


async def test_a_sub_session_that_was_begun_is_waited_for_again(tmp_path: Path) -> None:
    """C1, P2: killed after the commit that gave the work away; the next process finds it, and tells its answer."""

    def script(messages: list[ModelMessage]) -> Any:
        if "Count" in last_user_text(messages):
            return "There are three."
        found = list(tool_returns(messages).values())
        return f"got {found[-1]}" if found else call("run_sub_session", prompt="Count.", call_id="c1")

    crash = CrashCopy(tmp_path / "app.db", tmp_path / "copy.db", "child.start", "after")
    async with Runtime(tmp_path / "app.db")(ScriptedModel(script)) as outlast:
        outlast.database.watcher = crash.watch
        session = await outlast.sessions.create()
        await session.send("Go.")
        await crash.made()
        await session.settled()

    async with Runtime(crash.copy)(ScriptedModel(script)) as outlast:
        session = await outlast.sessions.get(session.id)
        await session.settled()
        (task,) = await session.tasks()
        answer: Any = return_of("c1", await session.history()).content
        assert answer == {
            "session_id": task.links["child_session"],
            "task_id": task.id,
            "state": "succeeded",
            "result": "There are three.",
        }
        assert [event.data["outcome"] for event in await events_of(session, "call.ended")] == ["success"]
        assert await wakes_seen(session) == []
