"""The process that the demo kills: a small program that runs an agent with Outlast and tells what happens.

It takes messages on stdin, one a line, and writes each event of the session to stdout as a line of JSON. The
model is scripted from the history it is given, so a new process goes on where the last one was. It ends with
its turn, or when whoever started it is gone.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage
from pydantic_core import to_json

from outlast.runtime import Outlast
from outlast.sessions.session import Session
from outlast.testing import ScriptedModel, Step, call, gate, last_user_text, text, tool_returns

TOOL = "pay_invoice"
LIMIT_SECONDS = 100
STALL_AT = 90
"""Characters after which the answer stalls in a process that is to be killed."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the model talks and how long the bank takes."""

    chunk: int
    pause: float
    bank_seconds: float


READABLE = Pace(chunk=3, pause=0.055, bank_seconds=2.0)
FAST = Pace(chunk=10, pause=0.002, bank_seconds=0.0)


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
        if not results:
            return [say("I will pay it now."), call(TOOL, supplier="Nordlys", euros=1240)]
        answer = _answer(results[0], last_user_text(messages))
        if is_stalling:
            return [say(answer[:STALL_AT]), gate(asyncio.Event()), say(answer[STALL_AT:])]
        return say(answer)

    return step


def _answer(paid: Any, question: str) -> str:
    answer = (
        f"Done: {paid['euros']:,} EUR went to {paid['supplier']} from the company account, and the bank has said yes."
    )
    if "arrive" in question:
        answer += f" You also asked when it will be there: on {paid['arrives']}."
    return f"{answer} There is nothing left for you to do."


def make_agent(paths: Paths, pace: Pace, bank_may_answer: asyncio.Event, *, is_stalling: bool) -> Agent[None, str]:
    """An agent with one tool that must not run twice."""
    agent = Agent(ScriptedModel(script(pace, is_stalling=is_stalling)), name="bookkeeper")

    @agent.tool_plain(name=TOOL)
    async def pay_invoice(supplier: str, euros: int) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        """Pay an invoice from the company account."""
        with paths.ledger.open("a") as ledger:
            ledger.write(f"paid {euros:,} EUR to {supplier}\n")
        await asyncio.sleep(pace.bank_seconds)
        await bank_may_answer.wait()
        return {"supplier": supplier, "euros": euros, "arrives": "Thursday"}

    return agent


async def run(paths: Paths, pace: Pace, *, after: int, is_stalling: bool) -> None:
    """Take messages and tell events until the turn has ended."""
    steered = asyncio.Event()
    agent = make_agent(paths, pace, steered, is_stalling=is_stalling)
    async with asyncio.timeout(LIMIT_SECONDS), Outlast(agent, database=paths.database) as outlast:
        known = await outlast.sessions.list(limit=1)
        session = known[0] if known else await outlast.sessions.create()
        taking = asyncio.create_task(_take_messages(session, steered), name="messages from stdin")
        telling = asyncio.create_task(_tell_events(session, after), name="events to stdout")
        try:
            await asyncio.wait({taking, telling}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (taking, telling):
                each.cancel()
            ends = await asyncio.gather(taking, telling, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end


async def _take_messages(session: Session, steered: asyncio.Event) -> None:
    """Each line is a message; the second one comes while the bank is at work. Returns when stdin ends."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        while line := (await reader.readline()).decode().strip():
            sent = await session.send(line)
            if sent.place is not None:
                steered.set()
    finally:
        transport.close()


async def _tell_events(session: Session, after: int) -> None:
    async with session.events(after=after) as stream:
        async for event in stream:
            line = to_json({"number": event.number, "type": event.type, "data": event.data})
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()
            if event.is_terminal:
                return


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
