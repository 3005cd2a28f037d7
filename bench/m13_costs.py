"""M13: what a turn, an idle session and a reader cost a cluster: the numbers from which larger ones are calculated.

Processor time is counted in each process by itself, so it says what a machine of one's own would be busy with.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import psutil

from bench.cost_app import DATABASE
from bench.measure import Report, at_once
from bench.turn_work import PROMPT
from chaos.fleet import Fleet, Member
from outlast.client import Client
from outlast.client.session import Session
from tests.support.stores.postgres import Installation, installed_postgres

ID = "M13"
APP = "bench.cost_app:app"
_SESSIONS, _TURNS, _AT_ONCE = 24, 10, 4
_IDLE = 1_000
_NAME = "bench"
_COUNTS = """
SELECT pg_database_size(current_database()) AS bytes,
       pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint AS wal,
       (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS transactions,
       (SELECT count(*) FROM events) AS events,
       (SELECT count(*) FROM turns) AS turns
"""


@dataclass(frozen=True, slots=True)
class Meters:
    """What was used up to a moment: processor seconds by kind of process, and the database's own counts."""

    api: float
    worker: float
    postgres: float
    counts: dict[str, int]


class Costs:
    def __init__(self, postgres: Installation, api: Member, worker: Member) -> None:
        self._postgres, self._api, self._worker = postgres, api, worker

    async def read(self) -> Meters:
        connection = await connected(self._postgres, _NAME)
        try:
            await connection.execute("SELECT pg_stat_force_next_flush()")
            counts = dict(await connection.fetchrow(_COUNTS))
        finally:
            await connection.close()
        return Meters(_cpu(self._api.pid), _cpu(self._worker.pid), _postgres_cpu(self._postgres), counts)


def run() -> Report:
    with tempfile.TemporaryDirectory() as folder, installed_postgres(is_durable=True) as postgres:
        return asyncio.run(_measure(postgres, Path(folder)))


async def _measure(postgres: Installation, folder: Path) -> Report:
    connection = await connected(postgres, "postgres")
    await connection.execute(f"CREATE DATABASE {_NAME}")
    await connection.close()
    environment = {DATABASE: postgres.url(_NAME), "OUTLAST_FILES": str(folder / "files")}
    async with Fleet(folder, environment) as fleet:
        api = await fleet.api("api", APP)
        costs = Costs(postgres, api, await fleet.worker("worker", APP))
        async with Client(api.url, api.token) as client:
            sessions = [await client.sessions.create() for _ in range(_SESSIONS)]
            await _turns(sessions, 1)
            before = await costs.read()
            seconds = await _turns(sessions, _TURNS)
            after = await costs.read()
            for _ in range(_IDLE):
                await client.sessions.create()
            idle = await costs.read()
    return _report(before, after, idle, seconds)


async def _turns(sessions: list[Session], count: int) -> float:
    """So many turns in each session, each session with a reader that follows it; gives the seconds that they took."""
    began = time.perf_counter()
    waiting = asyncio.Semaphore(_AT_ONCE)

    async def converse(at: int) -> None:
        async with waiting, _followed(sessions[at]):
            for _ in range(count):
                outcome = await (await sessions[at].send(PROMPT)).outcome()
                assert outcome.state == "completed", outcome

    await at_once(len(sessions), converse)
    return time.perf_counter() - began


@asynccontextmanager
async def _followed(session: Session) -> AsyncGenerator[None]:
    async def follow() -> None:
        async with session.events() as stream:
            async for _ in stream:
                pass

    following = asyncio.create_task(follow(), name="reader")
    try:
        yield
    finally:
        following.cancel()
        await asyncio.wait({following})


def _report(before: Meters, after: Meters, idle: Meters, seconds: float) -> Report:
    turns = after.counts["turns"] - before.counts["turns"]

    def each(name: str) -> float:
        return (after.counts[name] - before.counts[name]) / turns

    numbers = {
        "turns": turns,
        "turns_per_s": turns / seconds,
        "events_per_turn": each("events"),
        "transactions_per_turn": each("transactions"),
        "database_bytes_per_turn": each("bytes"),
        "wal_bytes_per_turn": each("wal"),
        "worker_cpu_per_turn_s": (after.worker - before.worker) / turns,
        "api_cpu_per_turn_s": (after.api - before.api) / turns,
        "postgres_cpu_per_turn_s": (after.postgres - before.postgres) / turns,
        "database_bytes_per_idle_session": (idle.counts["bytes"] - after.counts["bytes"]) / _IDLE,
    }
    rows: list[Sequence[str]] = [(name, f"{value:,.4g}") for name, value in numbers.items()]
    title = "what a turn costs: 2 model requests, 1 tool, 10 text deltas, and one reader over HTTP"
    store = "PostgreSQL with fsync, over a unix socket; one API process, one worker and clients on the same machine"
    return Report(ID, title, store, numbers, ("cost", "value"), rows)


async def connected(postgres: Installation, name: str) -> Any:
    driver: Any = asyncpg
    return await driver.connect(host=str(postgres.folder), user="postgres", database=name)


def _cpu(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def _postgres_cpu(postgres: Installation) -> float:
    """Of the server and of all its children, those that have ended too."""
    pid = int((postgres.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
    server = psutil.Process(pid)
    times = server.cpu_times()
    ended = times.children_user + times.children_system
    return times.user + times.system + ended + sum(_cpu(each.pid) for each in server.children())
