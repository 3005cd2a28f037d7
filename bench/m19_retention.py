"""M19: requests beside the removal of 1 GB of files and 10 million lines of output, and the same without it.

Each line is a row of its own, of tasks that ended long ago; the files are those of archived sessions. One server is
measured before, another while it removes all of it, a third one after that, all on the same database. At full size it
takes most of an hour and 5 GB of disk; `OUTLAST_BENCH_SHARE=0.01` does a hundredth of it, in about two minutes.
"""

import asyncio
import os
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import sqlalchemy as sa
from pydantic_ai import Agent

from bench.measure import Report, Target, milliseconds, quantile
from bench.server_process import Place, serving
from outlast import Outlast, Session, Settings, ids
from outlast.clock import to_microseconds
from outlast.runtime import LOCAL_OWNER
from outlast.store.files.file_store import FileStore
from outlast.store.tables import files, outputs, sessions, tasks
from outlast.store.unit import Unit
from outlast.testing import ScriptedModel

ID = "M19"
_LINES = 10_000_000
_LINES_OF_A_TASK = 1_000
_TASKS_OF_A_SESSION = 20
_FILES = 1_000
_FILES_OF_A_SESSION = 10
_FILE_BYTES = 1_000_000
_SECONDS = 30.0
_LONGEST = 7_200.0
_CLIENTS = 2
_PAUSE = 0.03
_LONG_AGO = to_microseconds(datetime.now(UTC) - timedelta(days=60))
_OFF = {f"OUTLAST_KEEP_{each}": "None" for each in ("OUTPUT", "FEED", "DELIVERIES", "FIRES", "EVENTS", "ARCHIVED")}
_ON = {**_OFF, "OUTLAST_KEEP_OUTPUT": "2592000", "OUTLAST_KEEP_ARCHIVED": "2592000"}
_LEFT = """
SELECT (SELECT count(*) FROM tasks WHERE ended_at IS NOT NULL AND output_removed_at IS NULL AND ended_at < :then)
     + (SELECT count(*) FROM sessions WHERE is_archived)
"""
Samples = Mapping[str, Sequence[float]]


@dataclass(slots=True)
class Requests:
    """Some clients, each with a session of its own: a turn, its view, a page of sessions, a page of tasks."""

    client: httpx2.AsyncClient
    seconds: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    is_over: bool = False

    async def run(self) -> None:
        session = (await self.client.post("/v1/sessions", json={})).raise_for_status().json()["id"]
        while not self.is_over:
            await self._take("turn", lambda: self._turn(session))
            for name, path in (
                ("view", f"/v1/sessions/{session}/view"),
                ("sessions", "/v1/sessions"),
                ("tasks", "/v1/tasks"),
            ):
                await self._take(name, lambda path=path: self.client.get(path))
                await asyncio.sleep(_PAUSE)

    async def _turn(self, session: str) -> httpx2.Response:
        body = {"text": "Hi"}
        sent = await self.client.post(f"/v1/sessions/{session}/messages", json=body)
        turn = sent.raise_for_status().json()["turn_id"]
        return await self.client.get(f"/v1/sessions/{session}/result", params={"turn_id": turn, "wait": 30})

    async def _take(self, name: str, ask: Callable[[], Awaitable[httpx2.Response]]) -> None:
        began = time.perf_counter()
        (await ask()).raise_for_status()
        self.seconds.setdefault(name, []).append(time.perf_counter() - began)


def run() -> Report:
    share = float(os.environ.get("OUTLAST_BENCH_SHARE", "1"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines, size = asyncio.run(_fill(folder, share))
        before = _measured(folder, _OFF, _for_a_while)
        began = time.monotonic()
        beside = _measured(folder, _ON, _until_all_is_removed)
        took = time.monotonic() - began
        left = _left(folder)
        after = _measured(folder, _OFF, _for_a_while)
        kept = sum(each.stat().st_size for each in (folder / "bench.db.files").rglob("*") if each.is_file())
    report = _report({"before": before, "beside it": beside, "after": after})
    report.rows.append(("removed", f"{lines:,} lines", f"{size / 1e9:.2f} GB", f"in {took:.0f} s", ""))
    if share < 1:
        report.notes.append(f"A share of {share:g} of the full size: it shows that the benchmark runs, not the target.")
    report.numbers |= {"share": share, "lines": lines, "files_gb": size / 1e9, "removal_s": took}
    report.targets += [
        Target("what retention left, tasks and sessions", left, 0, is_most=True),
        Target("what is left of the files, MB", kept / 1e6, 0, is_most=True),
    ]
    return report


def _measured(folder: Path, environment: Mapping[str, str], lasts: Callable[[Path], Awaitable[None]]) -> Samples:
    with serving(folder, "bench.retention_app:app", environment=environment) as place:
        return asyncio.run(_requests(place, folder, lasts))


async def _requests(place: Place, folder: Path, lasts: Callable[[Path], Awaitable[None]]) -> Samples:
    async with place.client() as client:
        all_ = [Requests(client) for _ in range(_CLIENTS)]
        running = [asyncio.create_task(each.run(), name="client") for each in all_]
        await lasts(folder)
        for each in all_:
            each.is_over = True
        await asyncio.gather(*running)
    names = all_[0].seconds
    return {name: [second for each in all_ for second in each.seconds[name]] for name in names}


async def _for_a_while(_folder: Path) -> None:
    await asyncio.sleep(_SECONDS)


async def _until_all_is_removed(folder: Path) -> None:
    until = time.monotonic() + _LONGEST
    while await asyncio.to_thread(_left, folder) and time.monotonic() < until:  # noqa: ASYNC110
        await asyncio.sleep(2.0)


def _left(folder: Path) -> int:
    then = to_microseconds(datetime.now(UTC) - timedelta(days=31))
    with closing(sqlite3.connect(f"file:{folder / 'bench.db'}?mode=ro", uri=True)) as connection:
        return connection.execute(_LEFT, {"then": then}).fetchone()[0]


async def _fill(folder: Path, share: float) -> tuple[int, int]:
    """Copies of rows that the runtime made, and output and files as it keeps them. How many lines, how many bytes."""
    agent = Agent(ScriptedModel(["Hello."]), name="bench")
    async with Outlast(agent, database=folder / "bench.db", settings=Settings(durability="normal")) as outlast:
        count = max(1, round(_LINES * share / _LINES_OF_A_TASK))
        async for session in _sessions(outlast, -(-count // _TASKS_OF_A_SESSION), is_archived=False):
            await outlast.database.transaction(lambda unit, session=session: _with_tasks(unit, session), name="fill")
        stored, some = FileStore(str(folder / "bench.db.files")), max(1, round(_FILES * share))
        async for session in _sessions(outlast, -(-some // _FILES_OF_A_SESSION), is_archived=True):
            for number in range(_FILES_OF_A_SESSION):
                data = number.to_bytes(4, "big") * (_FILE_BYTES // 4)
                key = await stored.put(ids.SessionId(session["id"]), data)
                row = {"name": f"{number}.bin", "key": key, "media_type": "application/octet-stream"}
                row |= {"bytes": len(data), "origin": "upload", "made_by": LOCAL_OWNER, "created_at": _LONG_AGO}
                keep = sa.insert(files).values(session_id=session["id"], **row)
                await outlast.database.transaction(lambda unit, keep=keep: unit.connection.execute(keep), name="fill")
        made = -(-count // _TASKS_OF_A_SESSION) * _TASKS_OF_A_SESSION * _LINES_OF_A_TASK
        return made, -(-some // _FILES_OF_A_SESSION) * _FILES_OF_A_SESSION * _FILE_BYTES


async def _sessions(outlast: Outlast[Any, Any], count: int, *, is_archived: bool) -> AsyncIterator[dict[str, Any]]:
    first = await outlast.sessions.create()
    row = dict(await outlast.database.read(lambda connection: _row(connection, first)))
    await outlast.sessions.delete(first.id)
    for _ in range(count):
        again = {**row, "id": ids.session_id(), "is_archived": is_archived, "last_event": 0}
        again |= {"created_at": _LONG_AGO, "updated_at": _LONG_AGO}
        insert = sa.insert(sessions).values(again)
        await outlast.database.transaction(lambda unit, insert=insert: unit.connection.execute(insert), name="fill")
        yield again


def _row(connection: sa.Connection, session: Session) -> Any:
    return connection.execute(sa.select(sessions).where(sessions.c.id == session.id)).mappings().one()


def _with_tasks(unit: Unit, session: Mapping[str, Any]) -> None:
    """Twenty that have ended, each with a thousand lines."""
    values: dict[type, Any] = {str: "{}", int: 0, bool: False, float: 0.0}
    plain = {each.name: values[each.type.python_type] for each in tasks.c if not each.nullable}
    said = {"agent": "bench", "title": "survey", "tool": "survey", "kind": "call", "origin": "spawn"}
    for _ in range(_TASKS_OF_A_SESSION):
        task_id = ids.task_id()
        row = {**plain, **said, "id": task_id, "session_id": session["id"], "owner_id": session["owner_id"]}
        row |= {"state": "succeeded", "wake": "silent", "created_at": _LONG_AGO, "ended_at": _LONG_AGO}
        unit.connection.execute(sa.insert(tasks).values({name: row[name] for name in row if name in tasks.c}))
        line = "The river rose by a hand overnight, and the bridge is closed.\n"
        lines = [
            {"number": at, "offset": at * len(line), "session_id": session["id"], "call_id": task_id, "attempt": 1}
            for at in range(_LINES_OF_A_TASK)
        ]
        unit.connection.execute(sa.insert(outputs).values(text=line), lines)


def _report(found: Mapping[str, Samples]) -> Report:
    report = Report(
        ID,
        "requests beside the removal of 1 GB of files and 10 million lines of output",
        "SQLite file, WAL, full",
        columns=("request", "when", "p50", "p99", "slowest"),
    )
    for name in found["before"]:
        p99 = dict[str, float]()
        for when, samples in found.items():
            seconds = samples[name]
            p99[when] = quantile(seconds, 0.99)
            report.rows.append(
                (name, when, milliseconds(quantile(seconds, 0.5)), milliseconds(p99[when]), milliseconds(max(seconds)))
            )
            report.numbers |= {f"{name}_{when.replace(' ', '_')}_p99_s": p99[when]}
        slower = p99["beside it"] / max(p99["before"], p99["after"])
        report.targets.append(Target(f"{name}, p99, of that without it", slower, 2.0, is_most=True))
    return report
