"""The app of the cluster benchmarks: its tools say when they ended or were cancelled, by the machine's clock."""

import asyncio
import os
import time
from collections.abc import Sequence

from pydantic_ai import Agent, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage

from outlast import Outlast, Settings, hints
from outlast.engines import presence
from outlast.testing import ScriptedModel, call, last_user_text, tool_returns
from outlast.testing.step import Step


async def nap(seconds: float) -> float:
    """Gives the instant at which it ended."""
    await asyncio.sleep(seconds)
    return time.time()


async def hold() -> str:
    """Until it is cancelled; then says when that was."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        with open(os.environ["BENCH_CANCELLED"], "a") as file:  # noqa: ASYNC230 - one line, once
            file.write(f"{time.time()}\n")
        raise
    return "never"


async def note(text: str) -> int:
    """At once, and safe to run again."""
    return len(text)


async def watch() -> str:
    """Within its budget, and safe to run again: its turn is in the middle of it."""
    await asyncio.sleep(120)
    return "seen"


def _reply(messages: list[ModelMessage]) -> Step:
    words = last_user_text(messages)
    if tool_returns(messages[-1:]) or words not in ("nap", "hold", "watch", "park"):
        return "Done."
    return call("nap", seconds=0.3) if words == "nap" else call("hold" if words == "park" else words)


NAME = "cluster"


def agent(capabilities: Sequence[AbstractCapability[object]] = ()) -> Agent[object, str]:
    return Agent(
        ScriptedModel(_reply),
        tools=[
            Tool(nap, metadata=hints(budget=0.01)),
            Tool(hold, metadata=hints(budget=0.01)),
            Tool(note, metadata=hints(idempotent=True)),
            Tool(watch, metadata=hints(budget=None, read_only=True)),
        ],
        name=NAME,
        capabilities=list(capabilities),
    )


app = Outlast(
    agent(),
    database=os.environ.get("BENCH_DATABASE", "bench.db"),
    settings=Settings(
        max_requests_per_minute=10**7,
        max_open_requests_per_owner=10**6,
        max_turns_per_owner=500,
        max_turns_per_worker=200,
        log_level="error",
    ),
)

if "BENCH_PLACE" in os.environ:  # as if each process were on a machine of its own
    presence.place = lambda: f"{os.environ['BENCH_PLACE']} {os.getpid()}"
