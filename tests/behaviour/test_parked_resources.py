"""What a parked call uses stays open under it: the turn's dependencies, and the user's toolsets."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Self

from pydantic_ai import Agent, FunctionToolset, RunContext

from outlast import TurnContext
from outlast.testing import ScriptedModel, call
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import BUDGET, only_task, parked_session
from tests.support.turns.runtime import Runtime, scripted


def one_call(tool: str = "survey") -> ScriptedModel:
    return scripted(call(tool, call_id="c1"), "It goes on.", "It is 2.4 m.")


async def test_deps_stay_open_until_the_parked_call_has_ended(runtime: Runtime) -> None:
    """DESIGN part 5: the turn's own dependencies, closed once, when nobody uses them any more."""
    here = Checkpoint()
    is_open: dict[str, bool] = {}
    seen: list[tuple[str, bool]] = []

    @asynccontextmanager
    async def deps(context: TurnContext) -> AsyncGenerator[str]:
        assert context.turn_id is not None
        is_open[context.turn_id] = True
        yield context.turn_id
        is_open[context.turn_id] = False

    async def survey(ctx: RunContext[str]) -> str:
        await here()
        seen.append((ctx.deps, is_open[ctx.deps]))
        return "2.4 m"

    agent = Agent(one_call(), deps_type=str, tools=[survey], name="agent")
    async with runtime(agent=agent, deps=deps, budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        assert task.turn_id is not None
        assert is_open == {task.turn_id: True}
        here.open()
        await session.settled()
        assert seen == [(task.turn_id, True)]
    assert len(is_open) == 2
    assert not any(is_open.values())


async def test_deps_are_closed_when_the_runtime_closes_under_a_parked_call(runtime: Runtime) -> None:
    """DESIGN part 5: whatever ends the call, its dependencies are left, and before the runtime is gone."""
    here, closed = Checkpoint(), asyncio.Event()

    @asynccontextmanager
    async def deps(context: TurnContext) -> AsyncGenerator[None]:
        try:
            yield None
        finally:
            for _ in range(20):
                await asyncio.sleep(0)
            closed.set()

    async def survey() -> str:
        await here()
        return "2.4 m"

    async with runtime(one_call(), tools=[survey], deps=deps, budget=BUDGET) as outlast:
        await parked_session(outlast)
        assert not closed.is_set()
    assert closed.is_set()


class Boat(FunctionToolset[Any]):
    """A user's toolset that closes what its tools use, without counting who uses it."""

    def __init__(self) -> None:
        super().__init__()
        self.open = self.opened = self.closed = 0
        self.closing_steps = 0
        self.here = Checkpoint()
        self.was_open: list[bool] = []
        self.add_function(self.survey)

    async def __aenter__(self) -> Self:
        self.open += 1
        self.opened += 1
        return self

    async def __aexit__(self, *args: Any) -> bool | None:
        for _ in range(self.closing_steps):
            await asyncio.sleep(0)
        self.open = 0
        self.closed += 1
        return None

    async def survey(self) -> str:
        await self.here()
        self.was_open.append(self.open > 0)
        return "2.4 m"


async def test_a_toolset_is_not_closed_under_a_parked_call(runtime: Runtime) -> None:
    """DESIGN part 6: closing waits for the last parked call of it."""
    boat = Boat()
    agent = Agent(one_call(), toolsets=[boat], name="agent")
    async with runtime(agent=agent, budget=BUDGET) as outlast:
        session, _ = await parked_session(outlast)
        assert boat.open
        boat.here.open()
        await session.settled()
        assert boat.was_open == [True]
        assert (await only_task(session)).result == "2.4 m"
    assert not boat.open


async def test_a_toolset_is_closed_before_the_runtime_is_gone(runtime: Runtime) -> None:
    """DESIGN part 6: also when the runtime closes under a parked call, and closing takes a while."""
    boat = Boat()
    boat.closing_steps = 20
    agent = Agent(one_call(), toolsets=[boat], name="agent")
    async with runtime(agent=agent, budget=BUDGET) as outlast:
        await parked_session(outlast)
    assert not boat.open
    assert boat.closed == boat.opened
