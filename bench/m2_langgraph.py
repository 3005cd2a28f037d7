"""M2 beside the LangGraph development server: the same turn over HTTP, on a durable Outlast session in this process.

The server is not a dependency. Install it elsewhere and name its command:

    python -m venv /path/to/venv
    /path/to/venv/bin/pip install langgraph "langgraph-cli[inmem]" langgraph-api
    OUTLAST_BENCH_LANGGRAPH=/path/to/venv/bin/langgraph python -m bench M2-LANGGRAPH

It keeps its runs in memory, so it promises less than what it is compared with.
"""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from bench.measure import Report, Sample, Target, at_once, milliseconds
from bench.turn_work import PROMPT, durable_turn, lifted, new_sessions, scripted_agent
from outlast import Outlast

ID = "M2-LANGGRAPH"
COMMAND = "OUTLAST_BENCH_LANGGRAPH"
_SINGLE = 40
_MANY = 64
_ROUNDS = 3
_START_SECONDS = 60
_INPUT = {"assistant_id": "turn", "input": {"messages": [{"role": "user", "content": PROMPT}]}}


def run() -> Report:
    with _server() as url:
        return asyncio.run(_measure(url))


async def _measure(url: str) -> Report:
    report = Report(
        ID,
        "the turn of M2: Outlast in this process / LangGraph development server over HTTP",
        "Outlast: SQLite file, WAL, durability full; LangGraph: in memory",
        columns=("work", "p50", "p99", "turns/s", "Outlast / LangGraph"),
    )
    agent, _ = scripted_agent()
    limits = httpx2.Limits(max_connections=_MANY)
    with tempfile.TemporaryDirectory() as folder:
        async with (
            Outlast(agent, database=Path(folder) / "full.db", settings=lifted("full", _MANY)) as outlast,
            httpx2.AsyncClient(base_url=url, timeout=120, limits=limits) as client,
        ):
            _add(report, "single", await _rounds(outlast, client, 1, _SINGLE), turns=1)
            _add(report, f"at_once_{_MANY}", await _rounds(outlast, client, _MANY, _ROUNDS), turns=_MANY)
    report.targets = [Target("single, turns/s of LangGraph's", report.numbers["single_ratio"], 2)]
    return report


async def _rounds(outlast: Outlast[None, str], client: httpx2.AsyncClient, many: int, rounds: int) -> dict[str, Sample]:
    samples = {"outlast": Sample(), "langgraph": Sample()}
    for index in range(rounds + 1):
        if index == 1:
            samples = {name: Sample() for name in samples}
        sessions = await new_sessions(outlast, many)
        await samples["outlast"].take(
            lambda sessions=sessions: at_once(many, lambda place: durable_turn(sessions[place]))
        )
        await samples["langgraph"].take(lambda: at_once(many, lambda _: _langgraph_turn(client)))
    return samples


async def _langgraph_turn(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/runs/wait", json=_INPUT)
    answer.raise_for_status()
    assert len(answer.json()["messages"]) == 4, answer.text


def _add(report: Report, label: str, samples: dict[str, Sample], *, turns: int) -> None:
    ratio = samples["langgraph"].p50 / samples["outlast"].p50
    report.numbers[f"{label}_ratio"] = ratio
    for name, sample in samples.items():
        rate = turns / sample.p50
        report.numbers |= {f"{label}_{name}_p50_s": sample.p50, f"{label}_{name}_turns_per_s": rate}
        shown = f"{ratio:.2f}" if name == "outlast" else ""
        report.rows.append(
            (f"{label} {name}", milliseconds(sample.p50), milliseconds(sample.p99), f"{rate:.0f}", shown)
        )


@contextmanager
def _server() -> Generator[str]:
    command = os.environ.get(COMMAND)
    if command is None:
        raise SystemExit(
            f"Set {COMMAND} to the langgraph command of another environment; bench/m2_langgraph.py says how."
        )
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(Path(__file__).with_name("langgraph_graph.txt"), Path(folder) / "graph.py")
        graphs = {"dependencies": ["."], "graphs": {"turn": "./graph.py:graph"}}
        (Path(folder) / "langgraph.json").write_text(json.dumps(graphs))
        port = _free_port()
        arguments = ["dev", "--no-browser", "--no-reload", "--port", str(port), "--n-jobs-per-worker", str(_MANY)]
        environment = {**os.environ, "LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1"}
        with (Path(folder) / "server.log").open("w") as log:
            server = subprocess.Popen([command, *arguments], cwd=folder, env=environment, stdout=log, stderr=log)
            try:
                url = f"http://127.0.0.1:{port}"
                _wait_until_up(url, server)
                yield url
            finally:
                server.terminate()
                server.wait(20)


def _wait_until_up(url: str, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and server.poll() is None:
        try:
            if httpx2.get(f"{url}/ok").is_success:
                return
        except httpx2.TransportError:
            time.sleep(0.2)
    raise RuntimeError("the LangGraph server did not come up")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
