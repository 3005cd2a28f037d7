"""M17, the view's half: a long session is opened. Time to the first byte of its view, however long its log is."""

import asyncio
import tempfile
import time
from pathlib import Path

import httpx2
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage

from bench.measure import Report, Target, milliseconds, quantile
from bench.server_process import Place, serving
from outlast import Outlast, Settings
from outlast.runtime import LOCAL_OWNER
from outlast.testing import ScriptedModel, Step, call, tool_returns

ID = "M17-OPEN"
_LENGTHS = (500, 5_000)
_ROUNDS = 30
_CALLS = 8


def run() -> Report:
    report = Report(ID, "a session is opened: its view", "SQLite file, WAL, full", columns=("what", "found"))
    with tempfile.TemporaryDirectory() as folder:
        sessions = asyncio.run(_sessions(Path(folder) / "bench.db"))
        with serving(Path(folder)) as place:
            for (session_id, events), length in zip(sessions, _LENGTHS, strict=True):
                seconds, size = asyncio.run(_open(place, session_id))
                numbers = report.numbers
                numbers[f"events_{length}"], numbers[f"bytes_{length}"] = events, size
                numbers[f"p50_{length}_s"], numbers[f"p99_{length}_s"] = quantile(seconds, 0.5), quantile(seconds, 0.99)
                found = f"p50 {milliseconds(quantile(seconds, 0.5))}, p99 {milliseconds(quantile(seconds, 0.99))}"
                report.rows.append((f"first byte, {events:,} events", f"{found}, {size / 1024:.0f} KiB"))
    report.targets.append(
        Target("first byte of 5,000 events, p50, ms", report.numbers["p50_5000_s"] * 1e3, 50, is_most=True)
    )
    return report


async def _sessions(path: Path) -> list[tuple[str, int]]:
    """Real turns, each with some calls."""

    def answer(messages: list[ModelMessage]) -> Step:
        asked = f"{len(messages)}"
        if len(tool_returns(messages[-1:])) == 0:
            return [call("look", at=f"place {n}", call_id=f"c{asked}-{n}") for n in range(_CALLS)]
        return "A paragraph of words that says what was found there. " * 8

    def look(at: str) -> dict[str, str]:
        return {"at": at, "found": "a river of some depth, and a boat" * 3}

    agent = Agent(ScriptedModel(answer), tools=[look], name="bench")
    made: list[tuple[str, int]] = []
    async with Outlast(agent, database=path, settings=Settings(durability="normal")) as outlast:
        for length in _LENGTHS:
            session = await outlast.owned_by(LOCAL_OWNER).create()
            while (await session.refresh()).last_event < length:
                await session.ask("What is there?")
            made.append((session.id, session.last_event))
    return made


async def _open(place: Place, session_id: str) -> tuple[list[float], int]:
    seconds: list[float] = []
    size = 0
    async with place.client() as client:
        for each in range(_ROUNDS + 3):
            first, size = await _first_byte(client, f"/v1/sessions/{session_id}/view")
            if each >= 3:
                seconds.append(first)
    return seconds, size


async def _first_byte(client: httpx2.AsyncClient, path: str) -> tuple[float, int]:
    began, first, size = time.perf_counter(), 0.0, 0
    async with client.stream("GET", path) as answer:
        answer.raise_for_status()
        async for chunk in answer.aiter_bytes():
            first = first or time.perf_counter() - began
            size += len(chunk)
    return first, size
