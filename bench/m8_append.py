"""M8: durable, batched appends to a session's log, and what they cost as the log grows."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import sqlalchemy as sa

from bench.measure import Report, Sample, Target, milliseconds
from outlast import ids
from outlast.clock import SystemClock
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.ids import SessionId
from outlast.store.database import Database
from outlast.store.postgres.opening import open_postgres
from outlast.store.repositories import sessions
from outlast.store.sqlite import opening
from outlast.store.unit import Unit
from tests.support.stores.postgres import running_postgres

ID = "M8"
_BATCH = 500
_ROUNDS = 40
_WARM_UP = 5
_LENGTHS = (1_000, 10_000, 100_000, 1_000_000)
_PROBES = 60
_FILL = 5_000


def run() -> Report:
    with running_postgres(is_durable=True) as server:
        return asyncio.run(_measure(server.url("postgres")))


async def _measure(postgres_url: str) -> Report:
    report = Report(
        ID,
        f"append events, durable, {_BATCH} a commit; and as one session's log grows",
        "SQLite file, WAL, `full` is the default durability; PostgreSQL with fsync, over a unix socket",
        columns=("work", "p50", "p99", "events/s", "of a log of 1,000"),
    )
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stores: dict[str, Database] = {
            f"sqlite_{durability}": await stack.enter_async_context(_sqlite(folder, durability))
            for durability in ("full", "normal")
        }
        stores["postgresql"] = await stack.enter_async_context(_postgres(postgres_url))
        await _throughput(report, stores)
        await _growth(report, "sqlite_full", stores["sqlite_full"])
        await _growth(report, "postgresql", stores["postgresql"])
    numbers = report.numbers
    report.targets = [
        Target("SQLite, durability full, events/s", numbers["sqlite_full_events_per_s"], 60_000),
        Target("PostgreSQL, events/s", numbers["postgresql_events_per_s"], 30_000),
        Target("SQLite, cost at 1,000,000 of cost at 1,000", numbers["sqlite_full_growth"], 1.2, is_most=True),
        Target("PostgreSQL, cost at 1,000,000 of cost at 1,000", numbers["postgresql_growth"], 1.2, is_most=True),
    ]
    return report


@asynccontextmanager
async def _sqlite(folder: Path, durability: str) -> AsyncGenerator[Database]:
    path = folder / f"{durability}.db"
    database = await opening.open_sqlite(path, clock=SystemClock(), durability=durability)
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def _postgres(url: str) -> AsyncGenerator[Database]:
    database = await open_postgres(sa.make_url(url))
    try:
        yield database
    finally:
        await database.close()


async def _throughput(report: Report, stores: dict[str, Database]) -> None:
    sessions_of = {name: await _session(store) for name, store in stores.items()}
    samples = {name: Sample() for name in stores}
    for index in range(_WARM_UP + _ROUNDS):
        if index == _WARM_UP:
            samples = {name: Sample() for name in stores}
        for name, store in stores.items():
            await samples[name].take(lambda name=name, store=store: _append(store, sessions_of[name], _BATCH))
    for name, sample in samples.items():
        rate = _BATCH / sample.p50
        report.numbers |= {
            f"{name}_p50_s": sample.p50,
            f"{name}_p99_s": sample.p99,
            f"{name}_events_per_s": rate,
            f"{name}_cpu_per_event_s": sample.cpu_p50 / _BATCH,
        }
        report.rows.append((name, milliseconds(sample.p50), milliseconds(sample.p99), f"{rate:,.0f}", ""))


async def _growth(report: Report, name: str, store: Database) -> None:
    """Logs of every length first, then a commit of one event to each in turn: all meet the same machine."""
    logs = {length: await _session(store) for length in _LENGTHS}
    for length, session_id in logs.items():
        for start in range(0, length, _FILL):
            await _append(store, session_id, min(_FILL, length - start))
    samples = {length: Sample() for length in _LENGTHS}
    for _ in range(_PROBES):
        for length, session_id in logs.items():
            await samples[length].take(lambda session_id=session_id: _append(store, session_id, 50))
    shortest = samples[_LENGTHS[0]].p50
    for length, sample in samples.items():
        label = f"{name}, log of {length:,}"
        report.numbers[f"{name}_at_{length}_p50_s"] = sample.p50
        report.rows.append(
            (
                label,
                milliseconds(sample.p50),
                milliseconds(sample.p99),
                f"{50 / sample.p50:,.0f}",
                f"{sample.p50 / shortest:.2f}",
            )
        )
    report.numbers[f"{name}_growth"] = samples[_LENGTHS[-1]].p50 / shortest


async def _session(store: Database) -> SessionId:
    session_id = ids.session_id()

    def create(unit: Unit) -> None:
        sessions.insert(unit, session_id, owner_id="local", agent="a", model=None, title=None, metadata={})

    await store.transaction(create, name="create")
    return session_id


async def _append(store: Database, session_id: SessionId, count: int) -> None:
    drafts = [
        Draft(EventType.PART_DELTA, {"part": "1.1.0", "offset": 7 * index, "text": "a river"}) for index in range(count)
    ]
    await store.transaction(lambda unit: unit.append(session_id, drafts), name="append")
