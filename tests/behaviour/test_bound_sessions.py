"""Sessions that are bound to a resource: arguments default to it, and others are refused (D11)."""

from typing import Any

import pytest
from pydantic_ai import Tool

from outlast import Binding
from outlast.testing import call
from tests.support.turns.runtime import Runtime, scripted
from tests.support.turns.tree import link

PAID: list[Any] = []
INVOICE = Binding(kind="invoice", id="4711", defaults={"invoice_id": 4711})


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    PAID.clear()


def pay(invoice_id: int, amount: int = 1) -> str:
    PAID.append((invoice_id, amount))
    return "paid"


async def test_arguments_default_to_the_resource_and_others_are_refused(runtime: Runtime) -> None:
    """D11: the model need not give them, and what it gives as text is the same; refusals cost no retries."""
    asked = [
        call("pay"),
        call("pay", invoice_id="4711", amount=2),
        call("pay", invoice_id=9),
        call("pay", invoice_id=8),
    ]
    model = scripted(*asked, call("pay", invoice_id=None), "Done.")
    async with runtime(model, tools=[Tool(pay, max_retries=0)]) as outlast:
        session = await outlast.sessions.create(binding=INVOICE)
        outcome = await session.ask("pay")
        assert PAID == [(4711, 1), (4711, 2), (4711, 1)]
        assert [each.outcome for each in outcome.calls] == ["success", "success", "failed", "failed", "success"]
        assert "invoice 4711" in str(outcome.calls[2].result)
        shown = model.requests[0].tools["pay"].parameters_json_schema
        assert (shown["required"], shown["properties"]["invoice_id"]["default"]) == ([], 4711)


async def test_a_sub_session_is_bound_like_its_parent(runtime: Runtime) -> None:
    """D11: and other sessions, and tools without such an argument, are as they were."""
    model = scripted(call("pay", invoice_id=9), "One.", call("pay", invoice_id=9), "Two.")
    async with runtime(model, tools=[pay]) as outlast:
        parent, child = await outlast.sessions.create(binding=INVOICE), await outlast.sessions.create()
        await link(outlast, child, parent)
        assert (await child.ask("pay")).calls[0].outcome == "failed"
        assert (await (await outlast.sessions.create()).ask("pay")).calls[0].outcome == "success"
        assert PAID == [(9, 1)]
