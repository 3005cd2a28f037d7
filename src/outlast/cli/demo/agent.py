"""The process that the demo kills: a small program that runs an agent with Outlast and writes its events.

It takes messages on stdin, one a line, and the line `approve` for a person's word; it writes each event of the session
to stdout as a line of JSON. The model is scripted from the history it is given, so a new process goes on where the last
one was. It ends when its stdin does: when no more messages come, or when the process that started it is gone.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage
from pydantic_core import to_json

from outlast.calls.call import artifact, progress
from outlast.handles.session import Session
from outlast.runtime import Outlast
from outlast.testing import ScriptedModel, Step, call, gate, last_user_text, text, tool_returns
from outlast.tool_hints import hints

TOOL = "pay_invoice"
SLOW_TOOL = "check_year"
ASKING_TOOL = "claim_back"
APPROVE = "approve"
"""Said on stdin by whoever lets run what waits for a person."""
LIMIT_SECONDS = 100
GATE_MONTH = 9
STALL_AT = 90
"""Characters after which the answer stalls in a process that is to be killed."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the model talks, how long the bank takes, and how long a month of invoices."""

    chunk: int
    pause: float
    bank_seconds: float
    budget_seconds: float
    month_seconds: float


READABLE = Pace(chunk=4, pause=0.04, bank_seconds=1.5, budget_seconds=0.8, month_seconds=0.35)
FAST = Pace(chunk=10, pause=0.002, bank_seconds=0.0, budget_seconds=0.05, month_seconds=0.02)


@dataclass(frozen=True, slots=True)
class Paths:
    """What outlives the process."""

    folder: Path

    @property
    def database(self) -> Path:
        return self.folder / "agent.db"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.txt"


def script(pace: Pace, *, is_stalling: bool) -> Callable[[list[ModelMessage]], Step]:
    """What the model says, decided by the history alone."""

    def say(words: str) -> Any:
        return text(words, chunk=pace.chunk, pause=pace.pause)

    def step(messages: list[ModelMessage]) -> Step:
        results = list(tool_returns(messages).values())
        asked = last_user_text(messages)
        if not results:
            return [say("I will pay it now."), call(TOOL, supplier="Nordlys", euros=1240)]
        if "background_result" in asked and ASKING_TOOL in asked:
            return say("It is done: Fjord AS was asked for the 312 EUR.")
        if "claim" in asked:
            return _claim(say, results)
        if "paid twice" in asked:
            return _check(say, results)
        if "background_result" in asked:
            found = "The check is done: 480 invoices, and one of them was paid twice, in March, to Fjord AS."
            return say(f"{found} It is in paid-twice.csv.")
        if "largest" in asked:
            return say("The one you paid today: 1,240 EUR to Nordlys.")
        answer = _answer(results[0], asked)
        if is_stalling:
            return [say(answer[:STALL_AT]), gate(asyncio.Event()), say(answer[STALL_AT:])]
        return say(answer)

    return step


def _check(say: Callable[[str], Any], results: list[Any]) -> Step:
    if any(isinstance(result, dict) and "task_id" in result for result in results):
        return say("That takes a while and goes on in the background. I will tell you what comes of it.")
    return call(SLOW_TOOL, year=2026)


def _claim(say: Callable[[str], Any], results: list[Any]) -> Step:
    if any("'awaiting': 'approval'" in str(result) for result in results):
        return say("That needs your word. I ask for nothing before I have it.")
    return call(ASKING_TOOL, supplier="Fjord AS", euros=312)


def _answer(paid: Any, question: str) -> str:
    answer = (
        f"Done: {paid['euros']:,} EUR went to {paid['supplier']} from the company account, and the bank has said yes."
    )
    if "arrive" in question:
        answer += f" You also asked when it will be there: on {paid['arrives']}."
    return f"{answer} There is nothing left for you to do."


@dataclass(frozen=True, slots=True)
class Gates:
    """Places where the tools wait for the play, however fast it is."""

    bank: asyncio.Event = field(default_factory=asyncio.Event)
    """Opened when a message came while the bank was at work."""
    last_months: asyncio.Event = field(default_factory=asyncio.Event)
    """Opened when a question was answered while the check went on, and its progress was seen."""


def make_agent(paths: Paths, pace: Pace, gates: Gates, *, is_stalling: bool) -> Agent[None, str]:
    """An agent with a tool that must not run twice and one that takes longer than a turn should wait."""
    agent = Agent(ScriptedModel(script(pace, is_stalling=is_stalling)), name="bookkeeper")

    @agent.tool_plain(name=TOOL)
    async def pay_invoice(supplier: str, euros: int) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        """Pay an invoice from the company account."""
        with paths.ledger.open("a") as ledger:
            ledger.write(f"paid {euros:,} EUR to {supplier}\n")
        await asyncio.sleep(pace.bank_seconds)
        await gates.bank.wait()
        return {"supplier": supplier, "euros": euros, "arrives": "Thursday"}

    @agent.tool_plain(name=SLOW_TOOL, metadata=hints(budget=pace.budget_seconds))
    async def check_year(year: int) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        """Look for invoices of a year that were paid twice."""
        for month in range(1, 13):
            await asyncio.sleep(pace.month_seconds)
            progress(month, 12, unit="months")
            if month == GATE_MONTH:
                await gates.last_months.wait()
        artifact("paid-twice.csv", b"supplier,month,euros\nFjord AS,March,312\n", "text/csv")
        return {"year": year, "invoices": 480, "paid_twice": ["Fjord AS, March"]}

    @agent.tool_plain(name=ASKING_TOOL, metadata=hints(approve=True))
    async def claim_back(supplier: str, euros: int) -> str:  # pyright: ignore[reportUnusedFunction]
        """Ask a supplier for money that was paid twice."""
        with paths.ledger.open("a") as ledger:
            ledger.write(f"claimed {euros:,} EUR from {supplier}\n")
        return f"Claimed {euros:,} EUR from {supplier}."

    return agent


async def run(paths: Paths, pace: Pace, *, after: int, is_stalling: bool) -> None:
    """Take messages and tell events until stdin ends."""
    gates = Gates()
    agent = make_agent(paths, pace, gates, is_stalling=is_stalling)
    async with asyncio.timeout(LIMIT_SECONDS), Outlast(agent, database=paths.database) as outlast:
        known = await outlast.sessions.list(limit=1)
        session = known[0] if known else await outlast.sessions.create()
        taking = asyncio.create_task(_take_messages(outlast, session, gates), name="messages from stdin")
        telling = asyncio.create_task(_tell_events(session, after, gates), name="events to stdout")
        try:
            await asyncio.wait({taking, telling}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (taking, telling):
                each.cancel()
            ends = await asyncio.gather(taking, telling, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end


async def _take_messages(outlast: Outlast[Any, Any], session: Session, gates: Gates) -> None:
    """Each line is a message, or a person's word. Returns when stdin ends."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        while line := (await reader.readline()).decode().strip():
            if line == APPROVE:
                [waiting] = (await outlast.tasks.requests()).items
                await outlast.tasks.approve(waiting.id, by="you")
                continue
            sent = await session.send(line)
            if sent.place is not None:
                gates.bank.set()
    finally:
        transport.close()


async def _tell_events(session: Session, after: int, gates: Gates) -> None:
    ends, months = 0, 0
    async with session.events(after=after) as stream:
        async for event in stream:
            sys.stdout.buffer.write(to_json(event) + b"\n")
            sys.stdout.buffer.flush()
            ends += event.is_terminal
            if event.type in ("task.created", "task.changed"):
                progressed = event.data["task"]["progress"]
                months = 0 if progressed is None else progressed["current"]
            if ends == 2 and months == GATE_MONTH:
                gates.last_months.set()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--after", type=int, default=0)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--stall", action="store_true")
    given = parser.parse_args()
    # stdout carries events and nothing else.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    pace = FAST if given.fast else READABLE
    asyncio.run(run(Paths(given.folder), pace, after=given.after, is_stalling=given.stall))


if __name__ == "__main__":
    main()
