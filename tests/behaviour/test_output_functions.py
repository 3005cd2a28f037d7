"""Output functions and validators: how they failed is told as it was, and what they use counts (A2, H1)."""

from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext, ToolOutput
from pydantic_ai.usage import RequestUsage

from outlast.testing import ScriptedModel, call, reply
from tests.support.turns.runtime import Runtime

TOKENS = RequestUsage(input_tokens=100, output_tokens=10)


class Depth(BaseModel):
    metres: int


def _expert() -> Agent[None, str]:
    return Agent(ScriptedModel([reply("Deep.", usage=TOKENS)] * 5))


def _breaks(metres: int) -> Depth:
    raise RuntimeError("the gauge is gone")


async def test_an_output_that_a_validator_refuses_is_failed_and_nothing_to_settle(runtime: Runtime) -> None:
    """A2: nothing was cancelled, and nobody need say whether it took effect."""
    agent = Agent(ScriptedModel([call("final_result", metres=1)] * 3), name="agent", output_type=Depth, retries=1)

    @agent.output_validator
    def check(value: Depth) -> Depth:  # pyright: ignore[reportUnusedFunction]
        raise ModelRetry("Too shallow.")

    async with runtime(agent=agent) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("How deep?")
        assert outcome.state == "failed"
        assert {each.outcome for each in outcome.calls} <= {"failed", "retried"}
        assert "Too shallow." in str(outcome.calls[-1].result)
        assert list((await session.refresh()).interrupted_calls) == []


async def test_an_output_function_that_raises_is_failed_and_its_words_stay_inside(runtime: Runtime) -> None:
    """A2: the model sees one generic sentence, the log everything."""
    model = ScriptedModel([call("final_result", metres=1)])
    async with runtime(
        agent=Agent(model, name="agent", output_type=ToolOutput(_breaks, name="final_result"))
    ) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("How deep?")
        assert outcome.state == "failed"
        [told] = outcome.calls
        assert told.outcome == "failed"
        assert "internal error" in str(told.result)
        assert "gauge" not in str(told.result)
        assert list((await session.refresh()).interrupted_calls) == []


@pytest.mark.parametrize("place", ["function", "validator"])
async def test_what_agents_in_outputs_use_is_used_by_the_turn_and_its_owner(runtime: Runtime, place: str) -> None:
    """H1: as if a tool had run them."""
    expert = _expert()

    async def depth(ctx: RunContext[Any], metres: int) -> Depth:
        if place == "function":
            await expert.run("How deep?", usage=ctx.usage)
        return Depth(metres=metres)

    model = ScriptedModel([reply(call("final_result", metres=1), usage=TOKENS)])
    agent = Agent(model, name="agent", output_type=ToolOutput(depth, name="final_result"))

    @agent.output_validator
    async def check(ctx: RunContext[Any], value: Depth) -> Depth:  # pyright: ignore[reportUnusedFunction]
        if place == "validator":
            await expert.run("Really?", usage=ctx.usage)
        return value

    async with runtime(agent=agent) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("How deep?")
        assert (outcome.state, outcome.usage.requests, outcome.usage.input_tokens) == ("completed", 2, 200)
        today = (await outlast.usage_of("local")).today
        assert (today.requests, today.input_tokens) == (2, 200)
