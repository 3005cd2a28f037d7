"""The agent of `outlast demo`: a bookkeeper whose model is a script, so that it needs no key and answers the same."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ToolReturnPart

from outlast.calls.call import output, progress
from outlast.cli.terminal.command import typed
from outlast.runtime import Outlast
from outlast.settings import Settings
from outlast.testing import ScriptedModel, Step, call, last_user_text, reasoning, text
from outlast.tool_hints import hints

MONTH_SECONDS = 2.0
BUDGET_SECONDS = 3.0
PAUSE_SECONDS = 0.03
_HELP = (
    "I keep the books. Ask me to pay an invoice, or whether any invoice of this year was paid twice: that takes half "
    "a minute, and goes on in the background while you ask me something else."
)


def what_to_type() -> Sequence[str]:
    outlast = typed()
    return (
        "Open the link, or type in another terminal, in this folder:",
        f"  {outlast} send --new --wait 'Pay the invoice from Nordlys.'",
        f"  {outlast} send --wait 'Was any invoice of this year paid twice?'   # goes on in the background",
        f"  {outlast} ps; {outlast} logs -f TASK; {outlast} attach SESSION",
        "Kill it with Ctrl-C or kill -9 while it works, start it again, and see it go on.",
    )


def make_app(database: Path) -> Outlast[Any, Any]:
    # Whoever tries it should see what to type, not a line for each request.
    return Outlast(make_agent(), database=database, settings=Settings(log_level="warning"))


def make_agent() -> Agent[None, str]:
    agent = Agent(ScriptedModel(_step), name="bookkeeper")

    @agent.tool_plain
    async def pay_invoice(supplier: str, euros: int) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        """Pay an invoice from the company account."""
        await asyncio.sleep(1.5)
        return {"supplier": supplier, "euros": euros, "arrives": "Thursday"}

    @agent.tool_plain(metadata=hints(budget=BUDGET_SECONDS, idempotent=True))
    async def check_year(year: int) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        """Look for invoices of a year that were paid twice."""
        for month in range(1, 13):
            output(f"{year}-{month:02}: 40 invoices\n")
            progress(month, 12, unit="months")
            await asyncio.sleep(MONTH_SECONDS)
        return {"year": year, "invoices": 480, "paid_twice": ["Fjord AS, March"]}

    return agent


def _step(messages: list[ModelMessage]) -> Step:
    """What the model says, decided by the history alone: a new process goes on where the last one was."""
    asked = last_user_text(messages).lower()
    last = messages[-1].parts[-1]  # not a result that stands before what was said after Stop
    if isinstance(last, ToolReturnPart):
        return _say(_about(last.content))
    if "background" in asked and "task" in asked:
        return _say("The check is done: 480 invoices, and one was paid twice, in March, to Fjord AS.")
    if "twice" in asked or "check" in asked:
        return [reasoning("All invoices of the year must be compared."), call("check_year", year=2026)]
    if "pay" in asked:
        return [_say("I will pay it now."), call("pay_invoice", supplier="Nordlys", euros=1240)]
    return _say(_HELP)


def _about(result: Any) -> str:
    if isinstance(result, dict) and "euros" in result:
        return f"Done: {result['euros']:,} EUR went to {result['supplier']}; it arrives on {result['arrives']}."
    if isinstance(result, dict) and "task_id" in result:
        return "That takes a while and goes on in the background. I will tell you what comes of it."
    return f"This is what came of it: {result}"


def _say(words: str) -> Any:
    return text(words, chunk=4, pause=PAUSE_SECONDS)
