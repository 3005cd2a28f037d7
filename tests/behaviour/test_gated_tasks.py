"""Tasks that run a tool by themselves pass the gates of their session too (A7, A8, D11)."""

from typing import Any

import pytest
from pydantic_ai import Tool

from outlast import Binding, Permissions, hints
from outlast.testing import call
from outlast.wire.task_state import TaskState
from tests.support.turns.runtime import Runtime, events_of, scripted

RAN: list[int] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


async def pay(invoice_id: int = 0) -> str:
    RAN.append(invoice_id)
    return "paid"


@pytest.mark.parametrize("is_repeatable", [True, False])
async def test_an_approved_call_is_judged_again(runtime: Runtime, is_repeatable: bool) -> None:
    """A7: what was denied after it was asked for is not run, though a person approved it."""
    tool = Tool(pay, metadata=hints(approve=True, idempotent=is_repeatable))
    async with runtime(scripted(call("pay"), "Wait.", "Refused."), tools=[tool]) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("pay")).outcome()
        [task] = await session.tasks()
        await session.update(permissions=Permissions(deny=["pay"]))
        await outlast.tasks_of(session.owner_id).approve(task.id, by="ada")
        await session.settled()
        [task] = await session.tasks()
        assert (task.state, RAN) == (TaskState.FAILED, [])
        assert "denies pay" in str(task.error)


async def test_an_approved_call_needs_what_must_come_before_it(runtime: Runtime) -> None:
    """A13, A6: the next version of the program asks for a guide first; other arguments change nothing about that."""

    def tool(**said: Any) -> Tool[None]:
        return Tool(pay, metadata=hints(approve=True, **said))

    def read_guide() -> str:
        return "Pay slowly."

    async with runtime(scripted(call("pay"), "Wait."), tools=[tool(), read_guide]) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("pay")).outcome()
    after = tool(requires={"tool": "read_guide"})
    async with runtime(scripted("Refused."), tools=[after, read_guide]) as outlast:
        session = await outlast.sessions.get(session.id)
        [task] = await session.tasks()
        await outlast.tasks.approve(task.id, args={"invoice_id": 8}, by="ada")
        ended = await outlast.tasks.wait(task.id, seconds=20)
        assert (ended.state, RAN) == (TaskState.FAILED, [])
        assert "read_guide" in str(ended.error)
        await session.settled()
        assert len(await events_of(session, "request.opened")) == 1


async def test_an_approved_call_is_bound_and_simulated_as_its_session_is(runtime: Runtime) -> None:
    """A8, D11: by what holds when it runs."""
    tool = Tool(pay, metadata=hints(approve=True))
    model = scripted(call("pay"), "Wait.", "Paid.", call("pay"), "Wait.", "Simulated.")
    async with runtime(model, tools=[tool]) as outlast:
        session = await outlast.sessions.create(binding=Binding(kind="invoice", id="7", defaults={"invoice_id": 7}))
        for is_dry_run in (False, True):
            await (await session.send("pay")).outcome()
            task = next(each for each in await session.tasks() if not each.is_over)
            await session.update(is_dry_run=is_dry_run)
            await outlast.tasks_of(session.owner_id).approve(task.id, by="ada")
            await session.settled()
        results = [each.result for each in await session.tasks()]
        assert RAN == [7]
        assert "paid" in results
        assert [each["type"] for each in results if isinstance(each, dict)] == ["dry_run"]
