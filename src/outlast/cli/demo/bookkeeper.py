"""The agent of `outlast demo`: a bookkeeper whose model is a script, so that it needs no key and answers the same."""

import asyncio
from itertools import count
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ToolReturnPart

from outlast.calls.call import artifact, output, progress
from outlast.calls.within.ask import ask
from outlast.cli.demo.wording import FOUND, about, about_end, is_end, last_words
from outlast.testing import ScriptedModel, Step, call, last_user_text, reasoning, text
from outlast.tool_hints import hints

MONTH_SECONDS = 2.0
BUDGET_SECONDS = 3.0
BANK_SECONDS = 1.5
PAUSE_SECONDS = 0.03
ACCOUNT_EUROS, SPENT_EUROS, LEAST_EUROS = 1_300, 200, 1_000
"""Of the account: each time somebody looks, so much was spent since."""
SUB_SESSION = "which of our suppliers is the cheapest for paper?"
"""What the bookkeeper gives to a session of its own."""
_HELP = (
    "I keep the books. Ask me to pay an invoice, which a person must allow, or whether any invoice of this year was "
    "paid twice: that takes half a minute, and goes on in the background while you ask me something else. I can book a "
    "receipt, of which I ask what it was for, and let a sub-session find the cheapest supplier of paper."
)
_PRICES = {"Nordlys": 34, "Fjord AS": 39, "Skog AS": 31}
_PURPOSES = {"type": "string", "enum": ["travel", "food", "office"]}


def make_agent() -> Agent[None, str]:
    agent = Agent(ScriptedModel(_step), name="bookkeeper")

    @agent.tool_plain(
        metadata=hints(
            approve=True,
            destructive=True,
            narrate={"running": "Paying {euros} EUR to {supplier}", "done": "Paid {euros} EUR to {supplier}"},
        )
    )
    async def pay_invoice(supplier: str, euros: int) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        """Pay an invoice from the company account."""
        await asyncio.sleep(BANK_SECONDS)
        return {"supplier": supplier, "euros": euros, "arrives": "Thursday"}

    @agent.tool_plain(
        metadata=hints(
            budget=BUDGET_SECONDS,
            idempotent=True,
            narrate={"running": "Comparing the invoices of {year}", "done": "Compared the invoices of {year}"},
        )
    )
    async def check_year(year: int) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        """Look for invoices of a year that were paid twice."""
        for month in range(1, 13):
            output(f"{year}-{month:02}: 40 invoices\n")
            progress(month, 12, unit="months")
            await asyncio.sleep(MONTH_SECONDS)
        artifact(FOUND, b"supplier,month,euros\nFjord AS,March,312\n", "text/csv")
        return {"year": year, "invoices": 480, "paid_twice": ["Fjord AS, March"]}

    @agent.tool_plain(metadata=hints(idempotent=True, narrate={"running": "Booking a receipt of {euros} EUR"}))
    async def book_receipt(euros: int) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        """Book a receipt. Whoever had the expense says what it was for."""
        return {"booked": euros, "as": await ask(f"What was the receipt of {euros} EUR for?", _PURPOSES)}

    @agent.tool_plain(metadata=hints(read_only=True, narrate={"running": "Asking for prices of {goods}"}))
    async def ask_prices(goods: str) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        """Ask the suppliers what a box costs."""
        await asyncio.sleep(BANK_SECONDS)
        return {"goods": goods, "prices": _PRICES}

    @agent.tool_plain(metadata=hints(read_only=True, narrate={"running": "Looking for new invoices"}))
    async def check_mailbox() -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        """Look for invoices that came by mail."""
        return {"letters": ["an invoice from Nordlys, 1,240 EUR"]}

    balance = count(ACCOUNT_EUROS - SPENT_EUROS, -SPENT_EUROS)

    @agent.tool_plain(metadata=hints(read_only=True, narrate={"running": "Looking at the account"}))
    async def account() -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        """How much is in the company account."""
        return {"balance": next(balance)}

    return agent


def _step(messages: list[ModelMessage]) -> Step:
    """What the model says, decided by the history alone: a new process goes on where the last one was."""
    last = messages[-1].parts[-1]  # not a result that stands before what was said after Stop
    if isinstance(last, ToolReturnPart):
        return _say(about(last.content))
    told = last_user_text(messages)
    if is_end(told):
        return _say(about_end(told))
    asked = last_words(told).lower()
    if not asked:
        return _say("I see.")
    if "mailbox" in asked and "every" in asked:
        return call("schedule", text="Check the mailbox.", when="0 8 * * *", title="mailbox")
    if "mailbox" in asked:
        return call("check_mailbox")
    if "account" in asked and "below" in asked:
        condition = {"kind": "below", "path": "balance", "value": LEAST_EUROS}
        return call("spawn_background", tool="account", args={}, schedule="* * * * *", wake_if=condition)
    if "2025" in asked:
        return call("spawn_background", tool="check_year", args={"year": 2025})
    if "twice" in asked or "check" in asked:
        return [reasoning("All invoices of the year must be compared."), call("check_year", year=2026)]
    if "receipt" in asked:
        return call("book_receipt", euros=59)
    if asked == SUB_SESSION:
        return call("ask_prices", goods="paper")
    if "paper" in asked or "supplier" in asked:
        return [_say("A sub-session will ask them."), call("run_sub_session", prompt=SUB_SESSION)]
    if "pay" in asked:
        return [_say("I will pay it now."), call("pay_invoice", supplier="Nordlys", euros=1240)]
    return _say(_HELP)


def _say(words: str) -> Any:
    return text(words, chunk=4, pause=PAUSE_SECONDS)
