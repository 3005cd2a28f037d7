"""Tasks that run a tool by themselves pass the gates of their session too (A7, A8, D11)."""

import pytest
from pydantic_ai import Tool

from outlast import Binding, Permissions, hints
from outlast.testing import call
from outlast.wire.task_state import TaskState
from tests.support.turns.runtime import Runtime, scripted

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
