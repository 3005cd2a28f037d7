"""What a stopped turn tells of its calls: what really happened, whatever the moment."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent, ModelRetry, RunContext, Tool, ToolDefinition
from pydantic_ai.capabilities import AbstractCapability, HandleDeferredToolCalls
from pydantic_ai.exceptions import ModelServerError, ToolFailed
from pydantic_ai.messages import (
    BinaryContent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults
from pydantic_ai.toolsets import ExternalToolset

import outlast as public
from outlast import hints
from outlast.calls import outcomes
from outlast.calls.view import LARGEST
from outlast.errors import AttemptLost
from outlast.runs.call_parts import CallParts
from outlast.store.files.file_store import FileStore
from outlast.testing import ScriptedModel, Step, call, text, texts_seen, tool_returns
from tests.support.logs.histories import return_of
from tests.support.moments.checkpoint import Checkpoint
from tests.support.moments.commits import let_run
from tests.support.moments.holding import HoldsBack
from tests.support.turns.runtime import Runtime, events_of, scripted, wait_for_event
from tests.support.turns.stopping import goes_on, going_on, stop


@pytest.fixture
def keeping(monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    """Where files wait before they are kept."""
    here, put = Checkpoint(), FileStore.put

    async def slow_put(*args: Any) -> str:
        await here()
        return await put(*args)

    monkeypatch.setattr(FileStore, "put", slow_put)
    return here


async def has_been_told_to_stop() -> None:
    """The running turn, which may be over by that."""

    def is_told() -> bool:
        return all(each.cancelling() for each in asyncio.all_tasks() if each.get_name().startswith("turn "))

    while not is_told():  # noqa: ASYNC110 - cancels tell nobody
        await asyncio.sleep(0.001)


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
    runtime: Runtime, keeping: Checkpoint, is_failing: bool
) -> None:
    """D5, P6: neither an artifact nor a result too long for the model lets a stop come in between."""

    async def survey() -> str:
        public.artifact("map.svg", b"<svg/>", "image/svg+xml")
        if is_failing:
            raise ToolFailed("the boat leaks")
        return "deep " * LARGEST

    grace = timedelta(seconds=30)
    async with runtime(going_on(call("survey", call_id="c1")), tools=[survey], stop_grace=grace) as outlast:
        session = await outlast.sessions.create()
        await session.send("Measure the river.")
        await keeping.reached()
        stopping = asyncio.create_task(stop(session))
        await has_been_told_to_stop()
        await let_run()
        keeping.open()
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


@pytest.mark.parametrize("how", ["failed", "finished", "parked"])
async def test_an_id_that_the_model_uses_again_tells_nothing_of_the_earlier_call(runtime: Runtime, how: str) -> None:
    """D5, P6: each call is told as what it came to itself, and Stop reaches it."""
    here, cleaned_up = Checkpoint(), asyncio.Event()

    async def look() -> str:
        if how == "failed":
            raise ToolFailed("the boat leaks")
        if how == "parked":
            await asyncio.Event().wait()
        return "2.4 m"

    async def pay() -> None:
        try:
            await here()
        finally:
            cleaned_up.set()

    tools = [Tool(look, metadata=hints(budget=0.01)), pay]
    async with runtime(going_on(call("look", call_id="c"), call("pay", call_id="c")), tools=tools) as outlast:
        session = await outlast.sessions.create()
        await session.send("Look, then pay.")
        await here.reached()
        await session.stop(cascade=True)
        assert cleaned_up.is_set()
        (*_, told) = [part for message in await session.history() for part in message.parts]
        assert isinstance(told, ToolReturnPart)
        assert (told.tool_name, told.content) == ("pay", outcomes.CANCELED)


async def test_a_call_that_a_capability_runs_may_have_had_an_effect(runtime: Runtime) -> None:
    """D5, P6: nothing of it passes the hook, and yet it has begun."""
    here = Checkpoint()

    async def answer(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        await here()
        return DeferredToolResults(calls={each.tool_call_id: "paid" for each in requests.calls})

    pay = ToolDefinition(name="pay", parameters_json_schema={"type": "object", "properties": {}})
    agent = Agent(
        going_on(call("pay", call_id="c1")),
        toolsets=[ExternalToolset([pay])],
        capabilities=[HandleDeferredToolCalls(answer)],
        name="agent",
    )
    async with runtime(agent=agent) as outlast:
        session = await outlast.sessions.create()
        await session.send("Pay.")
        await here.reached()
        await stop(session)
        assert return_of("c1", await session.history()).content == outcomes.CANCELED
        here.open()
        await goes_on(session)


async def test_calls_that_have_begun_are_not_run_again_when_their_step_is(runtime: Runtime) -> None:
    """P2: an output function that fails as a model does lets the step be tried again; what it asked for is done."""
    runs: list[str] = []
    is_paying = asyncio.Event()

    async def look() -> str:
        runs.append("look")
        return "2.4 m"

    async def pay() -> None:
        runs.append("pay")
        is_paying.set()
        await asyncio.Event().wait()

    async def publish(text: str) -> str:
        runs.append("publish")
        if runs.count("publish") == 1:
            await is_paying.wait()
            raise ModelServerError("scripted", "busy")
        return text

    asked = [call("look", call_id="c1"), call("pay", call_id="c2"), call("final_result", text="high", call_id="c3")]
    agent = Agent(
        scripted(asked), tools=[look, pay], output_type=[publish, str], name="agent", end_strategy="exhaustive"
    )
    async with runtime(agent=agent) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Measure the river.")
        assert outcome.state == "completed"
        assert [runs.count(each) for each in ("look", "pay")] == [1, 1]
        history = await session.history()
        assert return_of("c1", history).content == "2.4 m"
        assert return_of("c2", history).outcome == "interrupted"


async def test_the_end_of_a_call_is_in_the_log_when_the_stop_met_its_file(
    runtime: Runtime, keeping: Checkpoint
) -> None:
    """D5, P2: history and log agree on it."""

    def draw() -> BinaryContent:
        return BinaryContent(b"\x89PNG" * 100, media_type="image/png")

    async with runtime(going_on(call("draw", call_id="c1")), tools=[draw]) as outlast:
        session = await outlast.sessions.create()
        await session.send("Draw.")
        await keeping.reached()
        stopping = asyncio.create_task(stop(session))
        await has_been_told_to_stop()
        keeping.open()
        await stopping
        (ended,) = await events_of(session, "call.ended")
        assert ended.data["outcome"] == return_of("c1", await session.history()).outcome == "success"
        await goes_on(session)


async def test_stop_does_not_wait_for_a_file_store_that_hangs(runtime: Runtime, keeping: Checkpoint) -> None:
    """D5: for as long as the grace, and then the call is told as cancelled."""

    async def survey() -> None:
        public.artifact("map.svg", b"<svg/>", "image/svg+xml")

    async with runtime(going_on(call("survey", call_id="c1")), tools=[survey]) as outlast:
        session = await outlast.sessions.create()
        await session.send("Measure the river.")
        await keeping.reached()
        await stop(session)
        assert return_of("c1", await session.history()).content == outcomes.CANCELED
        keeping.open()
        await goes_on(session)


async def test_an_answer_that_the_model_did_not_get_leaves_the_wake_where_it_is(runtime: Runtime) -> None:
    """P3: check_background had the result in hand when the turn was stopped: it is told when the session goes on."""
    here, ready = Checkpoint(), Checkpoint()

    async def dig() -> str:
        await ready()
        return "gold"

    def steps(messages: list[ModelMessage]) -> Step:
        known: dict[str, Any] = dict(tool_returns(messages))
        if "c1" not in known:
            return call("dig", call_id="c1")
        if "c2" not in known:
            return call("check_background", {"task_id": known["c1"]["task_id"], "wait_seconds": 30}, call_id="c2")
        return text("Going on.")

    tools = [Tool(dig, metadata=hints(budget=0.01))]
    agent = Agent(ScriptedModel(steps), tools=tools, capabilities=[Audits(here)], name="agent")
    async with runtime(agent=agent) as outlast:
        session = await outlast.sessions.create()
        await session.send("Dig.")
        await wait_for_event(session, "call.ended")
        ready.open()
        await here.reached()
        await stop(session)
        assert return_of("c2", await session.history()).outcome == "interrupted"
        here.open()
        await session.resume()
        await session.settled()
        assert "gold" in str(texts_seen(await session.history()))


class Audits(AbstractCapability[Any]):
    """A capability of the agent that takes its time with an answer of `check_background`."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    async def after_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, result: Any
    ) -> Any:
        if call.tool_name == "check_background":
            await self._checkpoint()
        return result


class Recovers(AbstractCapability[Any]):
    """A capability of the agent that has another answer when a tool raises."""

    def __init__(self) -> None:
        self.has_answered = asyncio.Event()

    async def on_tool_execute_error(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, error: Exception
    ) -> Any:
        self.has_answered.set()
        return "paid elsewhere"


async def test_what_a_capability_makes_of_a_lost_call_is_not_told(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P5: the worker was taken for dead in the last moment before the tool; whoever goes on tells of the call."""
    recovers, asked, runs = Recovers(), list[str](), list[str]()

    async def confirm() -> None:
        asked.append("still mine?")
        if len(asked) == 2:
            raise AttemptLost("taken for dead")

    async def pay() -> None:
        runs.append("pay")

    agent = Agent(scripted(call("pay", call_id="c1"), "Well."), tools=[pay], capabilities=[recovers], name="agent")
    with monkeypatch.context() as patched:
        patched.setattr(CallParts, "confirm_call", property(lambda parts: confirm))
        async with runtime(agent=agent) as outlast:
            session_id = (await outlast.sessions.create()).id
            await outlast.sessions.send(session_id, "Pay.")
            await recovers.has_answered.wait()
            await let_run()
    async with runtime(agent=agent) as outlast:
        session = await outlast.sessions.get(session_id)
        await session.settled()
        assert return_of("c1", await session.history()).content == outcomes.MAY_HAVE_RUN
    assert runs == []
