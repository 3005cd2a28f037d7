"""The agents of the restart tests: built alike by the child that dies and by the test that goes on."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastmcp.client.transports import StdioTransport
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext, ToolReturn
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import BinaryContent, ModelMessage

import outlast as public
from outlast import TurnContext
from outlast.testing import ScriptedModel, Step, Steps, call, gate, last_user_text, text, tool_returns
from tests.support.crashes.crash import World

Options = dict[str, Any]


def agent_of(world: World, steps: Steps) -> Agent[None, str]:
    """An agent with tools that leave traces, each a place to die at before and after its effect."""
    agent = Agent(ScriptedModel(steps, by="history"), name="agent")

    @agent.tool_plain
    def charge(amount: int) -> str:  # pyright: ignore[reportUnusedFunction]
        world.effect(f"charge {amount} {public.idempotency_key()}")
        world.place.passes("tool charge")
        return f"charged {amount}"

    @agent.tool_plain
    async def look(name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        world.effect(f"look {name}")
        world.place.passes(f"tool look {name}")
        return f"{name} looks fine"

    @agent.tool_plain(metadata=public.hints(idempotent=True))
    def upsert(row: int) -> str:  # pyright: ignore[reportUnusedFunction]
        world.effect(f"upsert {row} {public.idempotency_key()}")
        world.place.passes("tool upsert")
        world.place.passes(f"tool upsert {row}")
        return f"row {row} is there"

    @agent.tool_plain(metadata=public.hints(read_only=True))
    def weigh() -> ToolReturn[str]:  # pyright: ignore[reportUnusedFunction]
        world.effect("weigh")
        return ToolReturn("3 kg", content=["The scale:", BinaryContent(b"\x89PNG", media_type="image/png")])

    return agent


def one_charge(world: World) -> Options:
    return {"agent": agent_of(world, [call("charge", amount=7, call_id="c1"), "Done."])}


def one_upsert(world: World) -> Options:
    return {"agent": agent_of(world, [call("upsert", row=7, call_id="c1"), "Done."])}


def three_calls(world: World) -> Options:
    """One that ended with a picture, one not idempotent in flight, one that may run again."""
    waited = agent_of(
        world,
        [
            [
                call("weigh", call_id="c1"),
                call("wait_then_charge", amount=7, call_id="c2"),
                call("upsert", row=1, call_id="c3"),
            ],
            "Done.",
        ],
    )

    @waited.tool_plain
    async def wait_then_charge(amount: int) -> str:  # pyright: ignore[reportUnusedFunction]
        world.effect(f"charge {amount}")
        await world.has_told_the_end_of("c1")
        world.place.passes("tool wait_then_charge")
        return f"charged {amount}"

    return {"agent": waited}


def two_steps(world: World) -> Options:
    steps = [
        call("look", name="door", call_id="c1"),
        [text("Half an ans"), gate(world.place.gate("model 2")), text("wer.")],
    ]
    return {"agent": agent_of(world, steps)}


def slow_check(world: World) -> Options:
    """The final words are committed before the turn ends: a validator takes its time in between."""
    agent = Agent(ScriptedModel(["Final."], by="history"), name="agent")

    @agent.output_validator
    async def check(output: str) -> str:  # pyright: ignore[reportUnusedFunction]
        world.effect("check")
        await world.place.gate("validator")()
        return output

    return {"agent": agent}


def without_charge(world: World) -> Options:
    """A deploy that removed the tool."""
    return {
        "agent": Agent(ScriptedModel([call("charge", amount=7, call_id="c1"), "Gone."], by="history"), name="agent")
    }


def with_another_charge(world: World) -> Options:
    """A deploy that changed the tool's parameters."""
    agent = Agent(ScriptedModel([call("charge", amount=7, call_id="c1"), "Changed."], by="history"), name="agent")

    @agent.tool_plain
    def charge(cents: int) -> str:  # pyright: ignore[reportUnusedFunction]
        world.effect(f"charge {cents} cents")
        return "charged"

    return {"agent": agent}


@dataclass
class Desk:
    """What the agent's tools are given; made anew on each worker, never stored."""

    owner: str


class Report(BaseModel):
    city: str
    degrees: int


def existing_agent(world: World) -> Options:
    """An agent as somebody wrote it before they heard of Outlast: deps, output type, MCP server, sync tool, timeout."""
    steps: Steps = [
        call("measure", city="Oslo", call_id="m1"),
        call("whoami", call_id="w1"),
        call("stuck", call_id="s1"),
        call("final_result", city="Oslo", degrees=4, call_id="f1"),
    ]
    script = str(Path(__file__).parents[1] / "mcp" / "mcp_server.py")
    server = StdioTransport(sys.executable, [script, str(world.folder / "effects")], keep_alive=False)
    agent = Agent(
        ScriptedModel(steps, by="history"),
        deps_type=Desk,
        output_type=Report,
        toolsets=[MCPToolset(server)],
        name="agent",
    )

    @agent.tool
    def whoami(ctx: RunContext[Desk]) -> str:  # pyright: ignore[reportUnusedFunction]
        world.effect(f"whoami {ctx.deps.owner}")
        world.place.passes("tool whoami")
        return f"the desk of {ctx.deps.owner}"

    @agent.tool_plain(timeout=0.05)
    async def stuck() -> None:  # pyright: ignore[reportUnusedFunction]
        await asyncio.Event().wait()

    @asynccontextmanager
    async def desk(context: TurnContext) -> AsyncGenerator[Desk]:
        world.effect("desk opened")
        yield Desk(context.owner_id)
        world.effect("desk closed")

    return {"agent": agent, "deps": desk}


def spawned(world: World) -> Options:
    """The model sets a tool going that may be run again and says what it costs, after the one that it requires."""
    steps = [
        call("look", name="guide", call_id="g1"),
        call("spawn_background", tool="survey", args={"place": "the mill"}, call_id="s1"),
        "It goes on.",
        "Heard.",
    ]
    agent = agent_of(world, steps)

    @agent.tool_plain(metadata=public.hints(idempotent=True, requires="look"))
    async def survey(place: str) -> str:  # pyright: ignore[reportUnusedFunction]
        public.cost(700)
        world.effect(f"survey {place} {public.idempotency_key()}")
        world.place.passes("tool survey")
        return f"{place} is measured"

    return {"agent": agent}


def given_away(world: World) -> Options:
    """A sub-session does the work, and its parent waits for it in its turn."""

    def script(messages: list[ModelMessage]) -> Step:
        said, found = last_user_text(messages), [*tool_returns(messages).values()]
        if said == "Look at the door.":
            return f"It says: {found[0]}." if found else call("look", name="door", call_id="l1")
        if "Background task" in said:
            return f"Told: {said}"
        asked = call("run_sub_session", prompt="Look at the door.", wait_seconds=300, call_id="c1")
        return f"The sub-session: {found[-1]}" if found else asked

    agent = Agent(ScriptedModel(script), name="agent")

    @agent.tool_plain(metadata=public.hints(read_only=True))
    async def look(name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        world.effect(f"look {name}")
        world.place.passes(f"tool look {name}")
        return f"{name} looks fine"

    return {"agent": agent}


def same_id(world: World) -> Options:
    """All calls of a turn have one id. The first goes on as a task, and the last may be run again."""
    steps = [call("dig", call_id="c1"), *(call("upsert", row=row, call_id="c1") for row in (1, 2)), *["Done."] * 3]
    agent = agent_of(world, steps)

    @agent.tool_plain(metadata=public.hints(idempotent=True, budget=0.05, wake="silent"))
    async def dig() -> str:  # pyright: ignore[reportUnusedFunction]
        await asyncio.sleep(0.5)
        return "gold"

    return {"agent": agent}


SCENARIOS: dict[str, Callable[[World], Options]] = {
    "one charge": one_charge,
    "one upsert": one_upsert,
    "three calls": three_calls,
    "two steps": two_steps,
    "slow check": slow_check,
    "without charge": without_charge,
    "another charge": with_another_charge,
    "existing agent": existing_agent,
    "spawned": spawned,
    "given away": given_away,
    "same id": same_id,
}
