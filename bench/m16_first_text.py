"""M16: a message is posted; how long until the first text of the answer is at the client, over HTTP."""

import asyncio
import tempfile
import time
from pathlib import Path

import httpx2

from bench.cluster import cluster
from bench.first_text_app import AT_ONCE, GOES_ON
from bench.measure import Report, Target, milliseconds, quantile
from bench.server_process import serving

ID = "M16"
APP = "bench.first_text_app:app"
COUNT = 100
_WARM = 10
"""So many come first and do not count: new processes prepare their statements with them."""
_CALM_SECONDS = 0.05
"""After each: what it left to do is over before the next begins."""


def run() -> Report:
    title = "POST message -> first text at the client"
    store = "SQLite file, WAL, full; PostgreSQL with fsync, 1 API + 2 workers on the same machine"
    report = Report(ID, title, store, columns=("store", "the model", "p50", "p99", "turn's end p50"))
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), APP) as place:
        asyncio.run(_measure(report, "sqlite", place.client()))
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder), workers=2, app=APP) as made:
        asyncio.run(_measure(report, "postgresql", made.client()))
    report.targets = [
        Target("SQLite, model that answers at once, p50 ms", report.numbers["sqlite_at_once_p50_ms"], 10, is_most=True),
        Target("SQLite, model that goes on, p50 ms", report.numbers["sqlite_goes_on_p50_ms"], 10, is_most=True),
    ]
    return report


async def _measure(report: Report, store: str, client: httpx2.AsyncClient) -> None:
    async with client:
        for _ in range(_WARM):
            await _first_text(client, AT_ONCE)
        first: dict[str, list[float]] = {"at_once": [], "goes_on": []}
        ends: dict[str, list[float]] = {"at_once": [], "goes_on": []}
        for _ in range(COUNT):
            for name, words in (("at_once", AT_ONCE), ("goes_on", GOES_ON)):
                text, end = await _first_text(client, words)
                first[name].append(text)
                ends[name].append(end)
    for name, found in first.items():
        p50, p99, end = quantile(found, 0.5), quantile(found, 0.99), quantile(ends[name], 0.5)
        report.rows.append((store, name.replace("_", " "), milliseconds(p50), milliseconds(p99), milliseconds(end)))
        report.numbers |= {
            f"{store}_{name}_p50_ms": p50 * 1e3,
            f"{store}_{name}_p99_ms": p99 * 1e3,
            f"{store}_{name}_turn_p50_ms": end * 1e3,
        }


async def _first_text(client: httpx2.AsyncClient, words: str) -> tuple[float, float]:
    """Seconds to the first text, and to the turn's end."""
    session_id = (await client.post("/v1/sessions", json={})).json()["id"]
    path, text = f"/v1/sessions/{session_id}/messages", 0.0
    began = time.perf_counter()
    async with client.stream("POST", path, json={"text": words}, headers={"Accept": "text/event-stream"}) as answer:
        async for line in answer.aiter_lines():
            if not text and '"part.delta"' in line:
                text = time.perf_counter() - began
            if '"turn.completed"' in line:
                break
    end = time.perf_counter() - began
    assert text, "the answer had no text"
    await asyncio.sleep(_CALM_SECONDS)
    return text, end
