"""The page of what larger set-ups would need: calculated from what the benchmarks measured, never measured itself."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outlast import Settings

RESULTS = Path(__file__).parents[1] / "bench" / "results"
_DAY = 86_400
_GB = 1e9

_INTRODUCTION = """# How far it goes

Everything on this page is **calculated** from costs that `make bench` measured on one small machine; nothing here was
run. It leaves out what a calculation cannot see: the network between machines, caches that become too small, a disk
that is shared. Take it as the order of magnitude with which to start, and measure your own turns.
"""


@dataclass(frozen=True, slots=True)
class Costs:
    """What was measured, in seconds of one core, bytes and counts."""

    worker: float
    api: float
    postgres: float
    database_bytes: float
    wal_bytes: float
    events: float
    idle_bytes: float
    appends: float
    readers_megabytes: float
    load: float


@dataclass(frozen=True, slots=True)
class Setup:
    """`cores` are those of the database's machine; every other machine has one server and three workers."""

    name: str
    servers: int
    workers: int
    cores: int


SETUPS = (
    Setup("1 machine: PostgreSQL, 1 server, 2 workers on 4 cores", 1, 2, 1),
    Setup("3 machines: PostgreSQL on 4 cores; 2 with 1 server and 3 workers each", 2, 6, 4),
    Setup("30 machines: PostgreSQL on 32 cores; 29 with 1 server and 3 workers each", 29, 87, 32),
)
TURNS_A_DAY = (100_000, 1_000_000, 10_000_000)


def costs() -> Costs:
    turn, append, readers = (_result(name) for name in ("M13", "M8", "M9"))
    return Costs(
        worker=turn["worker_cpu_per_turn_s"],
        api=turn["api_cpu_per_turn_s"],
        postgres=turn["postgres_cpu_per_turn_s"],
        database_bytes=turn["database_bytes_per_turn"],
        wal_bytes=turn["wal_bytes_per_turn"],
        events=turn["events_per_turn"],
        idle_bytes=turn["database_bytes_per_idle_session"],
        appends=append["postgresql_events_per_s"],
        readers_megabytes=readers["memory_with_mb"] - readers["memory_before_mb"],
        load=turn["machine"]["load"],
    )


def scale_page() -> str:
    found = costs()
    parts = [_INTRODUCTION, _measured(found), _setups(found), _days(found), _sessions(found), _connections()]
    return "\n".join(parts)


def _measured(found: Costs) -> str:
    return f"""## What was measured

One turn: two model requests, one fast tool, ten pieces of text, and a reader that follows it over HTTP; the model is
scripted, so it costs nothing and answers at once. PostgreSQL with fsync, one server and one worker on two cores (M13,
load average {found.load:g}: the busier the machine, the more a turn seems to cost).

| a turn costs | |
|---|---|
| a worker | {found.worker * 1e3:.0f} ms of a core |
| a server | {found.api * 1e3:.0f} ms of a core |
| PostgreSQL | {found.postgres * 1e3:.0f} ms of a core |
| the database | {found.database_bytes / 1e3:.0f} KB, and {found.wal_bytes / 1e3:.0f} KB of write-ahead log |
| the log | {found.events:.0f} events |

Also: {found.appends:,.0f} events/s is what PostgreSQL takes when it does nothing but append (M8); 1,000 readers on
one server take {found.readers_megabytes:.0f} MB (M9); a session in which nothing happens has
{found.idle_bytes:,.0f} bytes in the database, and neither memory nor a connection anywhere.
"""


def _setups(found: Costs) -> str:
    lines = [
        "## Turns a second, by calculation",
        "",
        "Each column is what that part could do if only it were busy, with one core for each server and worker and",
        "all cores of the database's machine for PostgreSQL. The least counts, and two thirds of it is a good plan.",
        "",
        "| | workers | servers | PostgreSQL | so at most | events/s |",
        "|---|---|---|---|---|---|",
    ]
    for each in SETUPS:
        parts = (each.workers / found.worker, each.servers / found.api, each.cores / found.postgres)
        most = min(parts)
        cells = " | ".join(f"{part:,.0f}" for part in parts)
        lines.append(f"| {each.name} | {cells} | {most:,.0f} | {most * found.events:,.0f} |")
    places = Settings.model_fields["max_turns_per_worker"].default
    at_once = ", ".join(f"{each.workers * places:,}" for each in SETUPS)
    lines += [
        "",
        "Turns of real agents mostly wait for their model. How many can wait at once is a setting, not a cost:",
        f"{places} for each worker (`max_turns_per_worker`), so {at_once} turns in the three set-ups.",
        "",
        "One limit no machine lifts: a turn starts with a commit that notifies, and PostgreSQL lets those commit one",
        "after the other. A probe with 16 connections had 1,384 such commits a second on a disk that flushes at once,",
        "592 at 1 ms a flush and 274 at 3 ms. For more turns a second than that, give PostgreSQL a faster disk.",
    ]
    return "\n".join(lines) + "\n"


def _days(found: Costs) -> str:
    lines = [
        "## Growth, by calculation",
        "",
        "| turns a day | on average | cores: workers, servers, PostgreSQL | database | write-ahead log |",
        "|---|---|---|---|---|",
    ]
    for turns in TURNS_A_DAY:
        rate = turns / _DAY
        cores = ", ".join(f"{rate * cost:.1f}" for cost in (found.worker, found.api, found.postgres))
        grows = f"{turns * found.database_bytes / _GB:,.1f} GB a day"
        wal = f"{turns * found.wal_bytes / _GB:,.1f} GB a day"
        lines.append(f"| {turns:,} | {rate:,.1f}/s | {cores} | {grows} | {wal} |")
    lines += [
        "",
        "Longer answers cost more in proportion: the text stands once in the log and once in history, and folding",
        "makes the log's copy a few rows when its turn has ended. Values over 256 KiB go to the file store instead.",
        "Nothing is deleted by itself: delete sessions, and PostgreSQL's autovacuum frees their room.",
    ]
    return "\n".join(lines) + "\n"


def _sessions(found: Costs) -> str:
    size = found.idle_bytes + 10 * found.database_bytes
    per_terabyte = 1e12 / size
    return f"""## Sessions and readers, by calculation

- A session of ten such turns takes {size / 1e3:.0f} KB: {per_terabyte / 1e6:,.0f} million of them in a terabyte.
- 30,000 readers at once, 1,000 on each of 30 servers: {30 * found.readers_megabytes / 1e3:.1f} GB of memory in all.
"""


def _connections() -> str:
    pool = Settings.model_fields["database_connections"].default
    lines = [
        "## Connections, by calculation",
        "",
        "A server uses its pool (`database_connections`) and one connection to listen; a worker its pool and four:",
        "listening, presence, jobs, looking for the dead. Those need a session of their own; the pool may go through",
        "PgBouncer.",
        "",
        f"| | with {pool} (the default) | with 4 | of which past a pooler |",
        "|---|---|---|---|",
    ]
    for each in SETUPS:
        own = each.servers + 4 * each.workers
        counts = [size * (each.servers + each.workers) + own for size in (pool, 4)]
        lines.append(f"| {each.name.partition(':')[0]} | {counts[0]:,} | {counts[1]:,} | {own:,} |")
    return "\n".join(lines) + "\n"


def _result(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text())
