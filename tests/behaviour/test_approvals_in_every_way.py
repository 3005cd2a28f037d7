"""Approvals, however and whenever a tool asks for one: by a hint, by its definition, as it runs, when parked (A13)."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Agent, ApprovalRequired, RunContext, Tool

from outlast import Outlast, Session, Task, hints
from outlast.errors import InvalidInput
from outlast.testing import call
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import task_that
from tests.support.turns.runtime import Runtime, events_of, scripted

RAN: list[int] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def pay(amount: int) -> str:
    RAN.append(amount)
    return f"paid {amount}"


def pay_asking(ctx: RunContext[None], amount: int) -> str:
    if not ctx.tool_call_approved:
        raise ApprovalRequired(metadata={"why": "money"})
    return pay(amount)


def pay_never(ctx: RunContext[None], amount: int) -> str:
    raise ApprovalRequired


WAYS: dict[str, Callable[[], Tool[Any]]] = {
    "hint": lambda: Tool(pay, metadata=hints(approve=True)),
    "requires_approval": lambda: Tool(pay, requires_approval=True),
    "ApprovalRequired": lambda: Tool(pay_asking, name="pay"),
}


def agent_of(tool: Tool[Any], *steps: Any) -> Agent[Any, Any]:
    return Agent(scripted(*steps), name="agent", tools=[tool])


async def waiting(outlast: Outlast[Any, Any], session: Session) -> Task:
    return await task_that(session, lambda each: each.state == "awaiting_input")


@pytest.mark.parametrize("way", WAYS)
async def test_always_spares_the_calls_of_turns(runtime: Runtime, way: str) -> None:
    """A13: the next call runs at once, as one that was approved."""
    steps = [call("pay", amount=5), "One.", "Two.", call("pay", amount=7), "Three."]
    async with runtime(agent=agent_of(WAYS[way](), *steps)) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("pay")).outcome()
        await outlast.tasks.approve((await waiting(outlast, session)).id, always=True)
        await session.settled()
        outcome = await (await session.send("again")).outcome()
        assert (outcome.state, outcome.calls[0].result, RAN) == ("completed", "paid 7", [5, 7])


@pytest.mark.parametrize("way", WAYS)
async def test_always_spares_spawned_calls(runtime: Runtime, way: str) -> None:
    """A13, B3: those too; and the arguments of one that asks are checked when somebody changes them."""
    async with runtime(agent=agent_of(WAYS[way](), *["Heard."] * 4)) as outlast:
        session = await outlast.sessions.create()
        first = await session.spawn("pay", {"amount": 5}, wake="silent")
        await waiting(outlast, session)
        with pytest.raises(InvalidInput, match="do not fit"):
            await outlast.tasks.approve(first.id, args={"amount": "much"})
        await outlast.tasks.approve(first.id, args={"amount": 6}, always=True)
        assert (await outlast.tasks.wait(first.id, seconds=20)).result == "paid 6"
        second = await session.spawn("pay", {"amount": 7}, wake="silent")
        assert (await outlast.tasks.wait(second.id, seconds=20)).result == "paid 7"
        assert RAN == [6, 7]


@pytest.mark.parametrize("is_approved", [True, False])
async def test_a_call_that_asks_after_it_was_parked_waits_like_any_other(runtime: Runtime, is_approved: bool) -> None:
    """A13: the same task; it runs once more when it is approved, though nobody said that it may run again."""
    here = Checkpoint()

    async def pay_late(ctx: RunContext[None], amount: int) -> str:
        if not ctx.tool_call_approved:
            await here()
            raise ApprovalRequired(metadata={"why": "much"})
        return pay(amount)

    tool = Tool(pay_late, name="pay", metadata=hints(budget=0.01))
    steps = [call("pay", amount=3), "It goes on.", "It asks.", "I see.", "I see."]
    async with runtime(agent=agent_of(tool, *steps)) as outlast:
        session = await outlast.sessions.create()
        assert (await (await session.send("pay")).outcome()).text == "It goes on."
        here.open()
        task = await waiting(outlast, session)
        assert task.request is not None
        assert (task.request.kind, task.request.args, RAN) == ("approval", {"amount": 3}, [])
        if is_approved:
            await outlast.tasks.approve(task.id, args={"amount": 4}, by="Ada")
        else:
            await outlast.tasks.refuse(task.id, by="Ada")
        ended = await outlast.tasks.wait(task.id, seconds=20)
        assert (ended.state, RAN) == (("succeeded", [4]) if is_approved else ("failed", []))
        await session.settled()
        assert len(await events_of(session, "request.opened")) == len(await session.tasks()) == 1


async def test_a_tool_that_asks_although_it_was_approved_fails_with_words(runtime: Runtime) -> None:
    """A13, failure: nobody is asked for ever; the turn goes on."""
    tool = Tool(pay_never, name="pay")
    steps = [call("pay", amount=5), "One.", "Two.", call("pay", amount=7), "Three."]
    async with runtime(agent=agent_of(tool, *steps)) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("pay")).outcome()
        task = await waiting(outlast, session)
        await outlast.tasks.approve(task.id, always=True)
        assert (await outlast.tasks.wait(task.id, seconds=20)).error is not None
        await session.settled()
        outcome = await (await session.send("again")).outcome()
        assert (outcome.state, outcome.text, outcome.calls[0].outcome) == ("completed", "Three.", "failed")
        assert "all the same" in outcome.calls[0].result
