"""M6: a message is posted; how long until its first event is at the client, over HTTP, on the embedded engine."""

import asyncio
import tempfile
import time
from pathlib import Path

from bench.measure import Report, Target, milliseconds, quantile
from bench.server_process import Place, serving

ID = "M6"
_COUNT = 200


def run() -> Report:
    report = Report(
        ID, "POST message -> first event at the client", "SQLite file, WAL, full", columns=("what", "p50", "p99")
    )
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as place:
        first, started = asyncio.run(_measure(place))
    for name, each in (("first event of the session's log", first), ("the turn has started", started)):
        report.rows.append((name, milliseconds(quantile(each, 0.5)), milliseconds(quantile(each, 0.99))))
    report.numbers = {
        "first_event_p50_ms": quantile(first, 0.5) * 1e3,
        "first_event_p99_ms": quantile(first, 0.99) * 1e3,
    }
    report.targets = [Target("first event, p50 ms", report.numbers["first_event_p50_ms"], 5, is_most=True)]
    return report


async def _measure(place: Place) -> tuple[list[float], list[float]]:
    first, started = list[float](), list[float]()
    async with place.client() as client:
        for _ in range(_COUNT):
            session_id = (await client.post("/v1/sessions", json={})).json()["id"]
            path = f"/v1/sessions/{session_id}/messages"
            began, is_first = time.perf_counter(), True
            async with client.stream(
                "POST", path, json={"text": "hi"}, headers={"Accept": "text/event-stream"}
            ) as answer:
                async for line in answer.aiter_lines():
                    if line.startswith("id:") and is_first:
                        first.append(time.perf_counter() - began)
                        is_first = False
                    if '"turn.started"' in line:
                        started.append(time.perf_counter() - began)
    return first, started
