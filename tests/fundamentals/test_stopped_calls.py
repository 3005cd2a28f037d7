"""What a stopped turn tells of its calls: what really happened, whatever the moment."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import FunctionToolCallEvent, FunctionToolResultEvent

import outlast as public
from outlast.calls.view import LARGEST
from outlast.store.files import FileStore
from outlast.testing import ScriptedModel, call
from outlast.tools import outcomes
from tests.support.checkpoint import Checkpoint
from tests.support.commits import let_run
from tests.support.histories import return_of
from tests.support.holding import HoldsBack
from tests.support.runtime import Runtime, events_of
from tests.support.stopping import goes_on, going_on, stop


def measuring(model: ScriptedModel, tool: Callable[..., Any], here: Checkpoint, held: type[Any]) -> Agent[None, str]:
    return Agent(model, tools=[tool], capabilities=[HoldsBack(here, held)], name="agent")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ToolFailed("the boat leaks"), "the boat leaks"),
        (ModelRetry("name a river"), "name a river"),
        (RuntimeError("no oars"), "failed with an internal error"),
    ],
)
async def test_a_call_that_failed_before_the_stop_is_told_as_failed(
    runtime: Runtime, error: Exception, told: str
) -> None:
    """D5, P2, P6: its error was on its way to the log when the turn was stopped."""
    here = Checkpoint()

    async def survey() -> str:
        raise error

    agent = measuring(going_on(call("survey", call_id="c1")), survey, here, FunctionToolResultEvent)
    async with runtime(agent=agent) as outlast:
        session = await outlast.sessions.create()
        await session.send("Measure the river.")
        await here.reached()
        await stop(session)
        part = return_of("c1", await session.history())
        assert part.outcome == "failed"
        assert told in str(part.content)
        (ended,) = await events_of(session, "call.ended")
        assert ended.data["outcome"] == "failed"
        here.open()
        await goes_on(session)


async def test_a_call_that_had_not_begun_is_told_as_not_run(runtime: Runtime) -> None:
    """D5, P6: the model may ask for it again without a doubt."""
    here, runs = Checkpoint(), list[str]()

    async def survey() -> None:
        runs.append("survey")

    agent = measuring(going_on(call("survey", call_id="c1")), survey, here, FunctionToolCallEvent)
    async with runtime(agent=agent) as outlast:
        session = await outlast.sessions.create()
        await session.send("Measure the river.")
        await here.reached()
        await stop(session)
        part = return_of("c1", await session.history())
        assert (part.outcome, part.content) == ("interrupted", outcomes.NOT_RUN)
        assert runs == []
        here.open()
        await goes_on(session)


@pytest.mark.parametrize("is_failing", [False, True])
async def test_a_call_that_ended_is_told_with_its_end_while_its_files_are_being_kept(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, is_failing: bool
) -> None:
    """D5, P6: neither an artifact nor a result too long for the model lets a stop come in between."""
    here, put = Checkpoint(), FileStore.put

    async def slow_put(*args: Any) -> str:
        await here()
        return await put(*args)

    async def survey() -> str:
        public.artifact("map.svg", b"<svg/>", "image/svg+xml")
        if is_failing:
            raise ToolFailed("the boat leaks")
        return "deep " * LARGEST

    monkeypatch.setattr(FileStore, "put", slow_put)
    grace = timedelta(seconds=30)
    async with runtime(going_on(call("survey", call_id="c1")), tools=[survey], stop_grace=grace) as outlast:
        session = await outlast.sessions.create()
        await session.send("Measure the river.")
        await here.reached()
        stopping = asyncio.create_task(stop(session))
        while not any(task.cancelling() for task in asyncio.all_tasks()):  # noqa: ASYNC110 - cancels tell nobody
            await asyncio.sleep(0.001)
        await let_run()
        here.open()
        await stopping
        part = return_of("c1", await session.history())
        if is_failing:
            assert (part.outcome, part.content) == ("failed", "the boat leaks")
        else:
            assert part.outcome == "success"
            assert f"'characters_total': {len('deep ') * LARGEST}" in str(part.content)
        (ended,) = await events_of(session, "call.ended")
        assert [each["name"] for each in ended.data["artifacts"]] == ["map.svg"]
        await goes_on(session)


async def test_an_output_function_that_runs_when_the_turn_is_stopped(runtime: Runtime) -> None:
    """D5, P6: it is no tool, and it may have had an effect."""
    here = Checkpoint()

    async def publish(text: str) -> str:
        await here()
        return text

    model = going_on(call("final_result", text="2.4 m", call_id="c1"))
    async with runtime(agent=Agent(model, output_type=[publish, str], name="agent")) as outlast:
        session = await outlast.sessions.create()
        await session.send("Measure the river.")
        await here.reached()
        await stop(session)
        part = return_of("c1", await session.history())
        assert (part.outcome, part.content) == ("interrupted", outcomes.CANCELED)
        await goes_on(session)
