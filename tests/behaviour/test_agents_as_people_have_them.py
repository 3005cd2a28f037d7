"""Agents as they are written elsewhere: models that cannot stream, overrides around the runtime, dependencies (A1)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models import Model, StreamedResponse
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.models.wrapper import WrapperModel

from outlast import TurnContext, hints
from outlast.calls.intake import TaskIntake
from outlast.errors import InvalidInput
from outlast.testing import call
from tests.behaviour.test_accepted_tasks import new
from tests.support.turns.runtime import Runtime, event_types, events_of, scripted


def answers(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if len(messages) == 1:
        return ModelResponse([ThinkingPart("Hm."), TextPart("I look."), ToolCallPart("look", {"where": "Oslo"})])
    return ModelResponse([TextPart("It rains.")])


class WithoutStreams(WrapperModel):
    """A provider that has no streamed requests."""

    @asynccontextmanager
    async def request_stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[StreamedResponse]:
        raise NotImplementedError("there are no streams here")
        yield


def look(where: str) -> str:
    return f"{where}: rain"


@pytest.mark.parametrize(
    "model",
    [
        FunctionModel(answers),
        WrapperModel(FunctionModel(answers)),
        FallbackModel(FunctionModel(answers)),
        WithoutStreams(FunctionModel(answers)),
    ],
    ids=["function", "wrapped", "fallback", "provider"],
)
async def test_a_model_that_cannot_stream_is_asked_without(runtime: Runtime, model: Model[Any]) -> None:
    """A1, C1: what it says is told in one piece; the turn is like any other."""
    async with runtime(agent=Agent(model, tools=[look])) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Oslo?")
        assert (outcome.state, outcome.text, outcome.reasoning) == ("completed", "It rains.", "Hm.")
        assert outcome.usage.requests == 2
        assert [(call.tool, call.result) for call in outcome.calls] == [("look", "Oslo: rain")]
        told = [event.data["text"] for event in await events_of(session, "part.delta")]
        assert told == ["Hm.", "I look.", '{"where":"Oslo"}', "It rains."]
        assert "response.dropped" not in await event_types(session)
        assert (await session.ask("And now?")).text == "It rains."


async def test_what_a_model_refuses_in_both_ways_fails_the_turn(runtime: Runtime) -> None:
    """A1: it is asked once without a stream, and not again and again."""
    asked: list[int] = []

    def refuse(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(len(messages))
        raise NotImplementedError("no images here")

    async with runtime(agent=Agent(FunctionModel(refuse))) as outlast:
        outcome = await (await outlast.sessions.create()).ask("Oslo?")
        assert (outcome.state, len(asked)) == ("failed", 1)


async def test_an_override_around_the_runtime_is_heard(runtime: Runtime) -> None:
    """A1: by turns, by what tools call, and by what they call in the background."""
    inner = Agent(TestModel(custom_output_text="paid"), name="inner")

    async def consult() -> str:
        return (await inner.run("?")).output

    agent = Agent(
        TestModel(custom_output_text="paid"), tools=[Tool(consult, metadata=hints(budget=0.01))], name="agent"
    )
    mine = scripted("Mine.", "Mine again.")
    with agent.override(model=mine), inner.override(model=TestModel(custom_output_text="free")):
        async with runtime(agent=agent) as outlast:
            session = await outlast.sessions.create()
            assert (await session.ask("?")).text == "Mine."
            accepted = await TaskIntake(outlast.database).accept(session.id, new("consult"))
            assert (await outlast.tasks.wait(accepted.id, seconds=10)).result == "free"
    assert len(mine.requests) == 1
    async with runtime(agent=agent) as outlast:
        assert (await (await outlast.sessions.create()).ask("?")).text == "paid"


async def test_tools_that_an_override_replaces_are_replaced_in_the_background_too(runtime: Runtime) -> None:
    """A1: also where a tool is run without a run of its agent around it."""

    def survey() -> str:
        return "paid"

    def pretended() -> str:
        return "free"

    agent = Agent(scripted("Done."), tools=[survey], name="agent")
    with agent.override(tools=[Tool(pretended, name="survey")]):
        async with runtime(agent=agent) as outlast:
            session = await outlast.sessions.create()
            accepted = await TaskIntake(outlast.database).accept(session.id, new("survey"))
            assert (await outlast.tasks.wait(accepted.id, seconds=10)).result == "free"


class Station:
    name = "Oslo"


@asynccontextmanager
async def station(context: TurnContext) -> AsyncGenerator[Station]:
    yield Station()


async def test_an_agent_that_needs_dependencies_is_refused_without(runtime: Runtime) -> None:
    """A1: at the start, with what to write; not in the middle of its first turn."""
    agent = Agent(scripted("Done."), deps_type=Station)
    with pytest.raises(InvalidInput, match=r"deps_type=Station.*Outlast\(agent, deps=") as refused:
        async with runtime(agent=agent):
            pass
    assert "yields a Station" in str(refused.value)
    async with runtime(agent=agent, deps=station) as outlast:
        assert (await (await outlast.sessions.create()).ask("?")).text == "Done."


@pytest.mark.parametrize("declared", [object, type(None), Station | None, Any])
async def test_an_agent_that_can_do_without_dependencies_starts(embedded: Runtime, declared: Any) -> None:
    """A1"""
    async with embedded(agent=Agent(scripted("Done."), deps_type=declared)) as outlast:
        assert outlast.is_running


async def test_dependencies_of_an_override_are_enough(runtime: Runtime) -> None:
    """A1"""
    found: list[str] = []

    def look(ctx: RunContext[Station]) -> str:
        found.append(ctx.deps.name)
        return "rain"

    agent = Agent(TestModel(call_tools=["look"]), deps_type=Station, tools=[look])
    with agent.override(deps=Station()):
        async with runtime(agent=agent) as outlast:
            assert (await (await outlast.sessions.create()).ask("?")).state == "completed"
    assert found == ["Oslo"]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("model", {"model": TestModel()}),
        ("tools", {"tools": [look]}),
        ("toolsets", {"toolsets": []}),
        ("deps", {"deps": 1}),
        ("instructions", {"instructions": "Rhyme."}),
        ("model settings", {"model_settings": {"temperature": 0}}),
    ],
)
async def test_an_override_that_turns_would_not_hear_of_is_refused(
    runtime: Runtime, name: str, change: dict[str, Any]
) -> None:
    """A1: a test that sets it inside of a running runtime would ask the paid model."""
    agent = Agent[object, str](scripted("First.", "Second."))
    async with runtime(agent=agent) as outlast:
        session = await outlast.sessions.create()
        with agent.override(**change), pytest.raises(InvalidInput, match=f"has set the {name} here.*around"):
            await session.send("Hello?")
        with Agent("test").override(model=TestModel()):
            assert (await session.ask("Hello?")).text == "First."
        assert (await session.ask("And now?")).text == "Second."


async def test_an_override_around_the_runtime_holds_for_what_its_tools_send(runtime: Runtime) -> None:
    """A tool runs with what was set at the start, so that is no news."""
    agent = Agent[object, str]("test")

    async def tell_another() -> str:
        other = await outlast.sessions.create()
        return (await other.ask("Hello?")).text

    mine = scripted(call("tell_another"), "I am the other.", "Told.")
    with agent.override(model=mine, tools=[tell_another]):
        async with runtime(agent=agent) as outlast:
            session = await outlast.sessions.create()
            outcome = await session.ask("Go.")
    assert (outcome.text, [call.result for call in outcome.calls]) == ("Told.", ["I am the other."])


async def test_a_used_up_script_says_which_step_is_missing(runtime: Runtime) -> None:
    async with runtime(scripted("Only this.")) as outlast:
        session = await outlast.sessions.create()
        await session.ask("One.")
        outcome = await session.ask("Two.")
    assert outcome.error is not None
    assert "the script has no step 2" in outcome.error["message"]
