"""Tools that say what they cost: counted once for each call, in its turn or task, and for its owner."""

import asyncio
from typing import Any

import pytest
from pydantic_ai import Tool

import outlast as public
from outlast import Outlast
from outlast.errors import InvalidInput
from outlast.testing import call
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.runtime import Runtime, scripted

PATIENCE = 60.0


async def spent(outlast: Outlast[Any, Any]) -> int:
    return (await outlast.usage_of("local")).today.known_microdollars


async def test_a_call_s_own_cost_counts_for_its_turn_or_task_and_its_owner(runtime: Runtime) -> None:
    """H4: reported in pieces, it is one sum; a spawned task has it as its own usage."""

    async def pay() -> str:
        public.cost(1_000)
        public.cost(500)
        return "paid"

    async with runtime(scripted([call("pay")], "Paid."), tools=[Tool(pay)]) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Pay.", wait=PATIENCE)
        before = await spent(outlast)
        assert before == 1_500
        task = await outlast.tasks.wait((await session.spawn("pay", wake="silent")).id, seconds=PATIENCE)
        assert task.usage is not None
        assert task.usage.cost_microdollars == 1_500
        assert await spent(outlast) == before + 1_500
    with pytest.raises(InvalidInput):
        public.cost(-1)


async def test_a_cancelled_task_has_cost_what_it_said(runtime: Runtime) -> None:
    """H4: once, though it did not come to its end."""
    here = Checkpoint()

    async def pay() -> None:
        public.cost(700)
        await here()

    async with runtime(tools=[Tool(pay)]) as outlast:
        session = await outlast.sessions.create()
        task = await session.spawn("pay", wake="silent")
        async with asyncio.timeout(PATIENCE):
            await here.reached()
        ended = await outlast.tasks.cancel(task.id)
        assert ended.state == "canceled"
        found = await outlast.tasks.get(task.id)
        assert found.usage is not None
        assert (found.usage.cost_microdollars, await spent(outlast)) == (700, 700)


async def test_a_tool_that_fails_has_cost_what_it_said(runtime: Runtime) -> None:
    """H4, failure: in its turn and as a task, each once."""

    async def pay() -> None:
        public.cost(700)
        raise RuntimeError("The card was refused.")

    async with runtime(scripted([call("pay")], "It failed."), tools=[Tool(pay)]) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Pay.", wait=PATIENCE)
        assert [each.outcome for each in outcome.calls] == ["failed"]
        assert await spent(outlast) == 700
        task = await outlast.tasks.wait((await session.spawn("pay", wake="silent")).id, seconds=PATIENCE)
        assert task.state == "failed"
        assert task.usage is not None
        assert (task.usage.cost_microdollars, await spent(outlast)) == (700, 1_400)
