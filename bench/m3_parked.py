"""M3: ten thousand calls parked at once in one process: memory, listing, and how far the event loop lags."""

import asyncio
import gc
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic_ai import Agent

from bench.measure import Report, Sample, Target, loop_lag, milliseconds, quantile
from outlast import Outlast, Settings, hints
from outlast.testing import ScriptedModel, calls, tool_returns

ID = "M3"
_SESSIONS = 20
_CALLS = 500
_LISTINGS = 50


def run() -> Report:
    return asyncio.run(_run())


async def _run() -> Report:
    report = Report(
        ID, f"{_SESSIONS * _CALLS} calls parked at once", "SQLite file, WAL, full", columns=("what", "value")
    )
    release = asyncio.Event()
    agent, model = _agent(release)
    with tempfile.TemporaryDirectory() as folder:
        async with Outlast(agent, database=Path(folder) / "m3.db", settings=_settings()) as outlast:
            await (await outlast.sessions.create()).ask("none")
            model.requests.clear()
            gc.collect()
            before = _resident()
            sessions = [await outlast.sessions.create() for _ in range(_SESSIONS)]
            for session in sessions:
                await (await session.send("park")).outcome()
                model.requests.clear()
            gc.collect()
            each = (_resident() - before) / (_SESSIONS * _CALLS)
            listing = Sample()
            async with loop_lag() as lags:
                for _ in range(_LISTINGS):
                    await listing.take(lambda: outlast.tasks.list(state="open", limit=100))
                    await asyncio.sleep(0.02)
            listed = [await outlast.tasks.list(session_id=session.id, limit=500) for session in sessions]
            release.set()
            for session in sessions:
                await session.settled()
    report.numbers = {
        "parked": float(sum(map(len, listed))),
        "bytes_each": each,
        "list_page_p50_s": listing.p50,
        "list_page_p99_s": listing.p99,
        "loop_lag_p99_s": quantile(lags, 0.99),
    }
    report.rows = [
        ("memory each", f"{each / 1024:.1f} KB"),
        ("listing a page of 100, p99", milliseconds(listing.p99)),
        ("event-loop lag, p99", milliseconds(quantile(lags, 0.99))),
    ]
    report.targets = [
        Target("KB each", each / 1024, 12, is_most=True),
        Target("listing a page, p99 ms", listing.p99 * 1e3, 10, is_most=True),
        Target("event-loop lag, p99 ms", quantile(lags, 0.99) * 1e3, 20, is_most=True),
    ]
    return report


def _agent(release: asyncio.Event) -> tuple[Agent[None, str], ScriptedModel]:
    def script(messages: list[Any]) -> Any:
        asked = str(messages[-1])
        if "park" not in asked or tool_returns(messages):
            return "Done."
        return calls("wait", *({"at": at} for at in range(_CALLS)))

    model = ScriptedModel(script)
    agent = Agent(model)

    @agent.tool_plain(metadata=hints(budget=0.05))
    async def wait(at: int) -> int:  # pyright: ignore[reportUnusedFunction]
        await release.wait()
        return at

    return agent, model


def _settings() -> Settings:
    return Settings(max_open_tasks_per_session=_CALLS + 1, wake_company=timedelta(seconds=30))


def _resident() -> int:
    """Bytes of memory this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
