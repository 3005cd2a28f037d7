"""M4 and M5, same process: a task's end reaches whoever waits; a cancel reaches the code."""

import asyncio
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_ai import Agent

from bench.measure import Report, Target, milliseconds, quantile
from outlast import Outlast, Session, Settings, hints
from outlast.testing import ScriptedModel, call, last_user_text, tool_returns

_COUNT = 200


@dataclass(slots=True)
class _Bench:
    """One parked call after the other, each when all that the one before set off is over.

    The tool notes when it returned or was cancelled.
    """

    release: asyncio.Event = field(default_factory=asyncio.Event)
    ended_at: float = 0.0

    def agent(self) -> Agent[None, str]:
        def script(messages: list[Any]) -> Any:
            is_asked = last_user_text(messages) == "park" and not isinstance_return(messages)
            return call("wait") if is_asked else "Done."

        agent = Agent(ScriptedModel(script))

        @agent.tool_plain(metadata=hints(budget=0.001))
        async def wait() -> str:  # pyright: ignore[reportUnusedFunction]
            try:
                await self.release.wait()
            finally:
                self.ended_at = time.perf_counter()
            return "ended"

        return agent


def isinstance_return(messages: list[Any]) -> bool:
    """Whether the last message answers a call."""
    return bool(tool_returns(messages[-1:]))


def run_ends() -> Report:
    return asyncio.run(_run_ends())


async def _run_ends() -> Report:
    report = Report(
        "M4", "task end -> waiting client, same process", "SQLite file, WAL, full", columns=("what", "p50", "p99")
    )
    bench, waits = _Bench(), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        async with Outlast(bench.agent(), database=Path(folder) / "m4.db", settings=Settings()) as outlast:
            for _ in range(_COUNT):
                session, task_id = await _park(outlast)
                waiting = asyncio.create_task(outlast.tasks.wait(task_id))
                await asyncio.sleep(0.005)
                bench.release.set()
                await waiting
                waits.append(time.perf_counter() - bench.ended_at)
                bench.release.clear()
                await session.settled()
    return _finish(report, waits, "end to client", 2)


def run_cancels() -> Report:
    return asyncio.run(_run_cancels())


async def _run_cancels() -> Report:
    report = Report(
        "M5", "cancel -> code gets it, same process", "SQLite file, WAL, full", columns=("what", "p50", "p99")
    )
    bench, waits = _Bench(), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        async with Outlast(bench.agent(), database=Path(folder) / "m5.db", settings=Settings()) as outlast:
            for _ in range(_COUNT):
                session, task_id = await _park(outlast)
                began = time.perf_counter()
                await outlast.tasks.cancel(task_id)
                waits.append(bench.ended_at - began)
                await session.settled()
    return _finish(report, waits, "cancel to code", 2)


async def _park(outlast: Outlast[None, str]) -> tuple[Session, str]:
    session = await outlast.sessions.create()
    outcome = await (await session.send("park")).outcome()
    return session, outcome.calls[0].result["task_id"]


def _finish(report: Report, waits: list[float], name: str, bound_ms: float) -> Report:
    settled = waits[10:]
    p50, p99 = quantile(settled, 0.5), quantile(settled, 0.99)
    report.numbers = {"same_process_p50_s": p50, "same_process_p99_s": p99, "count": float(len(settled))}
    report.rows = [(name, milliseconds(p50), milliseconds(p99))]
    report.targets = [Target(f"{name}, p99 ms", p99 * 1e3, bound_ms, is_most=True)]
    return report
