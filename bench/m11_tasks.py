"""M11: durable background tasks, end to end: accepted, claimed by a worker, run, their end told.

Each is asked for by itself, 32 at a time: a row and the event that tells of it, an attempt by a worker, a tool of the
agent that runs, its result and the event that tells of that, all durable. Nobody is woken. Whoever asks at the same
time as others shares a commit with them, and embedded, the commit that accepts a task also claims it if there is room.
On PostgreSQL this process accepts, and workers in processes of their own do the rest; beside them PgQueuer alone takes
and finishes the same number of jobs that do nothing and tell nobody. "With a run each" is what an agent costs that does
something around its tools: pydantic-ai makes a run of it for each call. In fewer sessions those who accept, claim and
end are more often in each other's way: a session is changed by one after the other.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability

from bench import cluster_app, pgqueuer_worker
from bench.cluster import ROOT, Cluster, cluster
from bench.measure import Report, Target, at_once
from outlast import Outlast, Settings, ids
from outlast.calls.intake import TaskIntake
from outlast.ids import SessionId
from outlast.store import urls
from outlast.store.postgres.connection import connect
from outlast.store.repositories.stored_task import NewTask, WakePolicy
from outlast.store.tables import tasks
from tests.support.stores.postgres import running_postgres

ID = "M11"
_COUNT = 1_000
_SESSIONS = 200
"""Five tasks each: so many of a session may run at once."""
_CROWDED = 50
_AT_ONCE = 32
_ROUNDS = 3
_OPEN = sa.select(sa.func.count()).select_from(tasks).where(tasks.c.ended_at.is_(None))


class Around(AbstractCapability[object]):
    """Does nothing. What an agent with capabilities does around a tool is done in a run of the agent."""


def run() -> Report:
    report = Report(
        ID,
        f"{_COUNT} background tasks of {_SESSIONS} sessions: accept, claim, run, end",
        "SQLite file, WAL, full; PostgreSQL with fsync, over a unix socket; everything on the same machine",
        columns=("where", "tasks/s", "of each round"),
    )
    _add(report, "embedded", asyncio.run(_embedded(cluster_app.agent())))
    _add(report, "embedded_with_a_run_each", asyncio.run(_embedded(cluster_app.agent([Around()]))))
    for workers in (1, 2):
        name = f"postgresql_{workers}_worker{'s' if workers > 1 else ''}"
        _add(report, name, _postgresql(workers))
        _add(report, f"{name}_in_{_CROWDED}_sessions", _postgresql(workers, sessions=_CROWDED))
        _add(report, f"pgqueuer_{workers}_worker{'s' if workers > 1 else ''}", _pgqueuer(workers))
    numbers = report.numbers
    report.targets = [
        Target("embedded, tasks/s", numbers["embedded_tasks_per_s"], 1_500),
        Target("PostgreSQL, 1 worker, tasks/s", numbers["postgresql_1_worker_tasks_per_s"], 700),
        Target("PostgreSQL, 2 workers, tasks/s", numbers["postgresql_2_workers_tasks_per_s"], 1_000),
    ]
    return report


def _add(report: Report, name: str, rates: list[float]) -> None:
    rate = statistics.median(rates)
    report.numbers[f"{name}_tasks_per_s"] = rate
    report.rows.append((name.replace("_", " "), f"{rate:,.0f}", ", ".join(f"{each:,.0f}" for each in rates)))


async def _embedded(agent: Agent[object, str]) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        async with Outlast(agent, database=Path(folder) / "m11.db", settings=Settings(log_level="error")) as outlast:
            return await _rounds(outlast)


def _postgresql(workers: int, *, sessions: int = _SESSIONS) -> list[float]:
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder), workers=workers, has_api=False) as made:
        return asyncio.run(_through(made, sessions))


async def _through(made: Cluster, sessions: int) -> list[float]:
    settings = Settings(run_work=False, files=str(made.folder / "files"), log_level="error")
    async with Outlast(cluster_app.agent(), database=made.database, settings=settings) as outlast:
        return await _rounds(outlast, sessions)


async def _rounds(outlast: Outlast[Any, Any], count: int = _SESSIONS) -> list[float]:
    intake = TaskIntake(outlast.database)
    sessions = [(await outlast.sessions.create()).id for _ in range(count)]
    await _round(outlast, intake, sessions, _COUNT // 10)  # warm
    return [await _round(outlast, intake, sessions, _COUNT) for _ in range(_ROUNDS)]


async def _round(outlast: Outlast[Any, Any], intake: TaskIntake, sessions: list[SessionId], count: int) -> float:
    async def all_ended() -> bool:
        return not await outlast.database.read(lambda connection: connection.execute(_OPEN).scalar_one())

    return await _rate(count, lambda at: _accept(intake, sessions[at % len(sessions)]), all_ended)


async def _accept(intake: TaskIntake, session_id: SessionId) -> None:
    new = NewTask(
        ids.task_id(),
        title="note",
        call_id=ids.reference_id(),
        tool="note",
        agent=cluster_app.NAME,
        spec={"args": {"text": "a river"}},
        wake=WakePolicy.SILENT,
    )
    await intake.accept(session_id, new)


def _pgqueuer(workers: int) -> list[float]:
    with ExitStack() as stack:
        server = stack.enter_context(running_postgres(is_durable=True))
        url = stack.enter_context(server.new_database())
        asyncio.run(pgqueuer_worker.install(url))
        for _ in range(workers):
            stack.callback(_end, subprocess.Popen([sys.executable, "-m", "bench.pgqueuer_worker", url], cwd=ROOT))
        return asyncio.run(_jobs(url))


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    process.wait()


async def _jobs(url: str) -> list[float]:
    async with AsyncExitStack() as stack:
        drivers: list[Any] = []
        for _ in range(10):
            connection = await connect(urls.parse(url), name="bench", when_closed=lambda: None)
            stack.push_async_callback(connection.close)
            drivers.append(pgqueuer_worker.queries(connection))

        async def enqueue(at: int) -> None:
            await drivers[at % len(drivers)].enqueue([pgqueuer_worker.ENTRYPOINT], [b"a river"], [0])

        async def all_ended() -> bool:
            return not await drivers[0].queue_size()

        await _rate(_COUNT // 10, enqueue, all_ended)
        return [await _rate(_COUNT, enqueue, all_ended) for _ in range(_ROUNDS)]


async def _rate(
    count: int, accept: Callable[[int], Awaitable[None]], all_ended: Callable[[], Awaitable[bool]]
) -> float:
    """So many a second, from the first that is accepted to the last that has ended."""
    following = iter(range(count))

    async def some(_: int) -> None:
        for at in following:
            await accept(at)

    began = time.perf_counter()
    await at_once(_AT_ONCE, some)
    while not await all_ended():  # noqa: ASYNC110 - it ends in other processes
        await asyncio.sleep(0.01)
    return count / (time.perf_counter() - began)
