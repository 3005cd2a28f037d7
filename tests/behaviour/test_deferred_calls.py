"""Calls whose result comes from outside: it cannot be given yet, and that is said (A1, B4)."""

from typing import Any

import pytest
from pydantic_ai import Agent, ApprovalRequired, CallDeferred, DeferredToolRequests, Tool, ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

from outlast import hints
from outlast.testing import ScriptedModel, call
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import task_that
from tests.support.turns.runtime import Runtime

RAN: list[int] = []
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "integer"}}}


def act(x: int) -> str:
    RAN.append(x)
    return "done"


def hands_out(x: int) -> str:
    raise CallDeferred


KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "outside": (
        {"toolsets": [ExternalToolset([ToolDefinition(name="act", parameters_json_schema=SCHEMA)])]},
        "It was not run.",
    ),
    "handed out": ({"tools": [Tool(hands_out, name="act")]}, "It may take effect."),
}


@pytest.mark.parametrize("name", KINDS)
async def test_a_call_that_nobody_can_answer_is_told_as_it_is(runtime: Runtime, name: str) -> None:
    """A1, B4: it never ran, another try would end alike, and the session goes on."""
    given, words = KINDS[name]
    RAN.clear()
    agent = Agent(ScriptedModel([call("act", x=1), "Well then."]), name="agent", **given)
    async with runtime(agent=agent) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("act")
        assert outcome.state == "failed"
        assert outcome.error is not None
        assert (outcome.error["kind"], outcome.error["is_retryable"]) == ("deferred_call", False)
        [told] = outcome.calls
        assert (told.outcome, str(told.result).endswith(words)) == ("interrupted", True), told.result
        left = [each["tool"] for each in (await session.refresh()).interrupted_calls]
        assert left == (["act"] if name == "handed out" else []), "what never ran is nothing to settle"
        assert (await session.ask("go on")).text == "Well then."
    assert RAN == []


@pytest.mark.parametrize("name", KINDS)
async def test_an_agent_that_gives_such_calls_as_output_completes(runtime: Runtime, name: str) -> None:
    """A1, B4: the program gets what is asked for, and the log tells what became of the call."""
    given, words = KINDS[name]
    model = ScriptedModel([call("act", x=1), "Well then."])
    agent = Agent(model, output_type=[str, DeferredToolRequests], name="agent", **given)
    async with runtime(agent=agent) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("act")
        assert isinstance(outcome.output, DeferredToolRequests)
        [told] = outcome.calls
        assert (told.outcome, str(told.result).endswith(words)) == ("interrupted", True), told.result
        left = [each["tool"] for each in (await session.refresh()).interrupted_calls]
        assert left == (["act"] if name == "handed out" else [])
        assert (await session.ask("go on")).text == "Well then."


@pytest.mark.parametrize(
    ("asks", "words"), [(ApprovalRequired, "It was not run."), (CallDeferred, "It may take effect.")]
)
async def test_a_parked_call_that_nobody_can_answer_is_told_as_it_is(
    runtime: Runtime, asks: type[Exception], words: str
) -> None:
    """A1, B4: its task says what it asks for, and not that something broke."""
    here = Checkpoint()

    async def act() -> str:
        await here()
        raise asks

    tool = Tool(act, metadata=hints(budget=0.01))
    model = ScriptedModel([call("act"), "It goes on.", "I see."])
    async with runtime(agent=Agent(model, name="agent", tools=[tool])) as outlast:
        session = await outlast.sessions.create()
        assert (await (await session.send("act")).outcome()).text == "It goes on."
        here.open()
        ended = await task_that(session, lambda task: task.is_over)
        assert ended.error is not None
        assert ended.error["kind"] == "deferred_call"
        assert ended.error["message"].endswith(words)
