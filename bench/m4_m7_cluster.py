"""M4, M5, M6 and M7 on PostgreSQL: one API process, workers in processes of their own, a client over HTTP."""

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2

from bench.cluster import Cluster, cluster
from bench.measure import Report, Target, milliseconds, quantile
from outlast.store import urls
from outlast.store.postgres.connection import connect

_COUNT = 200
_WARM = 10
"""So many come first and do not count: new processes prepare their statements with them."""
_CALM_SECONDS = 0.15
"""After each: what it set off (a woken turn, the rest of a turn) is over before the next begins."""
_STORE = "PostgreSQL with fsync, over a unix socket; API, workers and client on the same machine"


def run_ends() -> Report:
    return _distances("M4-CLUSTER", "task end -> waiting client in another process", _ends, 15)


def run_cancels() -> Report:
    return _distances("M5-CLUSTER", "cancel -> code in another process gets it", _cancels, 20)


def run_first_events() -> Report:
    """As M6 does: the first event of the session's log, and, beside it, when a worker has begun the turn."""
    report = Report("M6-CLUSTER", "POST message -> first event, two workers", _STORE, columns=("what", "p50", "p99"))
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder), workers=2) as made:
        first, begun = asyncio.run(_first_events(made))
    for name, each in (("first event of the session's log", first), ("a worker has begun the turn", begun)):
        report.rows.append((name, milliseconds(quantile(each, 0.5)), milliseconds(quantile(each, 0.99))))
    report.numbers = {
        "p50_ms": quantile(first, 0.5) * 1e3,
        "p99_ms": quantile(first, 0.99) * 1e3,
        "begun_p50_ms": quantile(begun, 0.5) * 1e3,
        "begun_p99_ms": quantile(begun, 0.99) * 1e3,
    }
    report.targets = [Target("first event, p50 ms", report.numbers["p50_ms"], 12, is_most=True)]
    return report


def run_takeover() -> Report:
    """On one machine it is seen that a process is gone; as if on two, its lock must have been free for a while."""
    report = Report("M7", "kill -9 a worker with 50 turns and 50 parked calls", _STORE, columns=("what", "value"))
    for name, is_apart in (("recovery", False), ("apart", True)):
        with tempfile.TemporaryDirectory() as folder, cluster(Path(folder), workers=1, is_apart=is_apart) as made:
            seconds, continued = asyncio.run(_takeover(made))
        report.numbers |= {
            f"{name}_p50_s": quantile(seconds, 0.5),
            f"{name}_p99_s": quantile(seconds, 0.99),
            f"{name}_max_s": max(seconds),
            f"{name}_continued": continued,
        }
    numbers = report.numbers
    report.rows = [(name, f"{value:.4g}") for name, value in numbers.items()]
    report.targets = [
        Target("recovery, p99 s", numbers["recovery_p99_s"], 2, is_most=True),
        Target("recovery as on two machines, p99 s", numbers["apart_p99_s"], 2, is_most=True),
        Target("not continued", 200 - numbers["recovery_continued"] - numbers["apart_continued"], 0, is_most=True),
    ]
    return report


def _distances(id_: str, title: str, measure: Any, bound: float) -> Report:
    report = Report(id_, title, _STORE, columns=("p50", "p99", "max"))
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder), workers=2) as made:
        found: list[float] = asyncio.run(measure(made))
    p50, p99 = quantile(found, 0.5), quantile(found, 0.99)
    report.rows = [(milliseconds(p50), milliseconds(p99), milliseconds(max(found)))]
    report.numbers = {"p50_ms": p50 * 1e3, "p99_ms": p99 * 1e3}
    report.targets = [Target("p99 ms", p99 * 1e3, bound, is_most=True)]
    return report


async def _ends(made: Cluster) -> list[float]:
    found: list[float] = []
    async with made.client() as client:
        for _ in range(_WARM + _COUNT):
            task = await _parked(client, "nap")
            ended = (await client.get(f"/v1/tasks/{task}", params={"wait": 30})).json()
            found.append(time.time() - float(ended["result"]))
            await asyncio.sleep(_CALM_SECONDS)
    return found[_WARM:]


async def _cancels(made: Cluster) -> list[float]:
    found: list[float] = []
    async with made.client() as client:
        for at in range(_WARM + _COUNT):
            task = await _parked(client, "hold")
            asked = time.time()
            await client.post(f"/v1/tasks/{task}/cancel", json={"wait": 30})
            found.append(float(made.cancelled.read_text().splitlines()[at]) - asked)
            await asyncio.sleep(_CALM_SECONDS)
    return found[_WARM:]


async def _first_events(made: Cluster) -> tuple[list[float], list[float]]:
    first, begun = list[float](), list[float]()
    async with made.client() as client:
        for _ in range(_WARM + _COUNT):
            path = f"/v1/sessions/{await _session(client)}/messages"
            began = time.perf_counter()
            accept = {"Accept": "text/event-stream"}
            async with client.stream("POST", path, json={"text": "hi"}, headers=accept) as answer:
                is_first = True
                async for line in answer.aiter_lines():
                    if line.startswith("id:") and is_first:
                        first.append(time.perf_counter() - began)
                        is_first = False
                    if '"turn.started"' in line:
                        begun.append(time.perf_counter() - began)
                        break
            await asyncio.sleep(_CALM_SECONDS)
    return first[_WARM:], begun[_WARM:]


async def _takeover(made: Cluster) -> tuple[list[float], float]:
    """From the kill to the first new event of each session whose turn or parked call the worker had."""
    async with made.client() as client:
        watching = [await _send(client, "watch") for _ in range(50)]
        parked = [await _send(client, "park") for _ in range(50)]
        for session_id in parked:
            await client.get(f"/v1/sessions/{session_id}/result", params={"wait": 30})
        made.add_worker()
        connection = await connect(urls.parse(made.database), name="bench", when_closed=lambda: None)
        try:
            killed = int(time.time() * 1e6)
            made.workers[0].kill()
            news = await _news(connection, [*watching, *parked], killed)
        finally:
            await connection.close()
    return [(at - killed) / 1e6 for at in news.values()], float(len(news))


async def _news(connection: Any, sessions: list[str], after: int) -> dict[str, int]:
    end = time.monotonic() + 30
    found: dict[str, int] = {}
    while len(found) < len(sessions) and time.monotonic() < end:
        rows = await connection.fetch(
            "SELECT session_id, min(at) AS at FROM events WHERE at > $1 GROUP BY session_id", after
        )
        found = {row["session_id"]: row["at"] for row in rows if row["session_id"] in sessions}
        await asyncio.sleep(0.1)
    return found


async def _session(client: httpx2.AsyncClient) -> str:
    return (await client.post("/v1/sessions", json={})).json()["id"]


async def _send(client: httpx2.AsyncClient, words: str) -> str:
    session_id = await _session(client)
    await client.post(f"/v1/sessions/{session_id}/messages", json={"text": words})
    return session_id


async def _parked(client: httpx2.AsyncClient, words: str) -> str:
    session_id = await _send(client, words)
    await client.get(f"/v1/sessions/{session_id}/result", params={"wait": 30})
    return (await client.get("/v1/tasks", params={"session": session_id})).json()["items"][0]["id"]
