"""Which tools may be called without a run of their agent: those around which the agent puts nothing."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset, InstrumentationSettings, RunContext, Tool, ToolDefinition
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.instrumented import InstrumentedModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset

from outlast.agents.direct import DirectTools
from tests.support.turns.calls import silent_call


async def note(text: str) -> int:
    return len(text)


async def note_with_context(ctx: RunContext[None], text: str) -> int:
    """Through its context a tool can reach all of a run: its events, its messages, its other tools."""
    return len(text)


async def validated(ctx: RunContext[None], text: str) -> None:
    return


async def prepared(ctx: RunContext[None], tool: ToolDefinition) -> ToolDefinition | None:
    return tool


def is_direct(agent: Agent[Any, Any], tool: str = "note") -> bool:
    return DirectTools(agent).caller(silent_call(tool)) is not None


class Mine(Agent[Any, str]):
    """What a subclass does around its tools is its own."""


def plain(**options: Any) -> Agent[None, str]:
    return Agent(TestModel(), tools=[note], **options)


def listening() -> Agent[None, str]:
    agent = plain()

    @agent.on_event
    async def hear(ctx: RunContext[None], event: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        return

    return agent


def traced() -> Agent[None, str]:
    agent = plain()
    agent.instrument = True
    return agent


def with_a_toolset_made_later() -> Agent[None, str]:
    agent = plain()

    @agent.toolset
    def more(ctx: RunContext[None]) -> AbstractToolset[None]:  # pyright: ignore[reportUnusedFunction]
        return FunctionToolset()

    return agent


PLAIN: dict[str, Callable[[], Agent[Any, Any]]] = {
    "tools": plain,
    "instructions": lambda: plain(instructions="Be brief.", system_prompt="You are a clerk.", retries=3, name="clerk"),
    "toolsets of functions": lambda: Agent(TestModel(), toolsets=[FunctionToolset([note]), FunctionToolset()]),
    "output": lambda: plain(output_type=[int, str], model_settings={"temperature": 0.1}),
}
OTHERS: dict[str, Callable[[], Agent[Any, Any]]] = {
    "capability": lambda: plain(capabilities=[AbstractCapability[None]()]),
    "listener": listening,
    "subclass": lambda: Mine(TestModel(), tools=[note]),
    "no model": lambda: Agent(tools=[note]),
    "traced model": lambda: Agent(InstrumentedModel(TestModel(), InstrumentationSettings()), tools=[note]),
    "traced": traced,
    "validation context": lambda: plain(validation_context={"unit": "metre"}),
    "limited": lambda: plain(max_concurrency=1),
    "wrapped toolset": lambda: Agent(TestModel(), toolsets=[WrapperToolset(FunctionToolset([note]))]),
    "toolset beside it": lambda: plain(toolsets=[WrapperToolset(FunctionToolset[None]())]),
    "toolset made later": with_a_toolset_made_later,
    "with a context": lambda: Agent(TestModel(), tools=[Tool(note_with_context, name="note")]),
    "with a validator": lambda: Agent(TestModel(), tools=[Tool(note, args_validator=validated)]),
    "prepared": lambda: Agent(TestModel(), tools=[Tool(note, prepare=prepared)]),
    "with approval": lambda: Agent(TestModel(), tools=[Tool(note, requires_approval=True)]),
    "found by search": lambda: Agent(TestModel(), tools=[Tool(note, defer_loading=True)]),
}


@pytest.mark.parametrize("name", PLAIN)
async def test_of_a_plain_agent_they_are_called_directly(name: str) -> None:
    """A1: entered or not, with the same result."""
    agent = PLAIN[name]()
    call = DirectTools(agent).caller(silent_call())
    assert call is not None
    assert await call() == 7
    async with agent:
        assert is_direct(agent)
    assert not is_direct(agent, "unknown")


@pytest.mark.parametrize("name", OTHERS)
def test_where_an_agent_does_more_a_run_is_made_around_them(name: str) -> None:
    """A1: what it does must be done."""
    assert not is_direct(OTHERS[name]())


def test_when_all_agents_are_traced_none_is_plain() -> None:
    agent = plain()
    Agent.instrument_all()
    try:
        assert not is_direct(agent)
    finally:
        Agent.instrument_all(False)
    assert is_direct(agent)
