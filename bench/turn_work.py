"""The turn that is measured: two model requests, one fast tool, ten text deltas."""

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, SystemPromptPart

from outlast import Outlast
from outlast.agents import summary
from outlast.handles.session import Session
from outlast.settings import Settings
from outlast.testing import ScriptedModel, Step, call, text, tool_returns

PROMPT = "How deep is the river today?"
_DEPTH = call("depth", place="the old bridge")
_SUMMARY = text("The depth of the river was asked for at the old bridge: two metres each time.")
_ANSWER = text("The river is two metres deep at the old bridge now", chunk=5)


def scripted_agent() -> tuple[Agent[None, str], ScriptedModel]:
    model = ScriptedModel(_step)
    agent = Agent(model, instructions="Answer in one sentence.")

    @agent.tool_plain
    async def depth(place: str) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        """How deep the water is."""
        return {"place": place, "metres": 2}

    return agent, model


def _step(messages: list[ModelMessage]) -> Step:
    first = messages[0].parts[0]
    if isinstance(first, SystemPromptPart) and first.content == summary.ASKED:  # of a history that grew long
        return _SUMMARY
    return _ANSWER if tool_returns(messages[-1:]) else _DEPTH


async def bare_turn(agent: Agent[None, str]) -> str:
    """What the durable loop does with pydantic-ai, and nothing else: every node, every stream to its end."""
    async with agent.iter(PROMPT) as run:
        async for node in run:
            if Agent.is_model_request_node(node) or Agent.is_call_tools_node(node):
                async with node.stream(run.ctx) as stream:
                    async for _ in stream:
                        pass
    assert run.result is not None
    return run.result.output


async def durable_turn(session: Session) -> str:
    sent = await session.send(PROMPT)
    outcome = await sent.outcome()
    assert outcome.state == "completed", outcome
    return outcome.text


async def new_sessions(outlast: Outlast[None, str], count: int) -> list[Session]:
    return [await outlast.sessions.create() for _ in range(count)]


def lifted(durability: Any, most: int) -> Settings:
    """Default settings but for the caps on how much runs at once."""
    return Settings(durability=durability, max_turns_per_worker=most, max_turns_per_owner=most)
