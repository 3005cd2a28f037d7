"""A run: the old version is loaded, migrated under, replaced and sent away; then everything is judged and reported."""

import asyncio
import json
import os
import platform
import random
import shutil
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from chaos import ledger
from chaos.client import Record
from chaos.cluster.postgres import ClusterDatabase
from chaos.deploy import names
from chaos.deploy.clients import Balancer, LoadClient, Readers
from chaos.deploy.judge import ALL_KINDS
from chaos.deploy.version import REVISION, next_release
from chaos.fleet import ROOT, Fleet, Member, NotReady
from outlast.client import Client
from tests.support.stores.postgres import Installation, postgres_version

APP = "chaos.deploy.app:app"
_PATIENCE = 120.0
_PACKAGES = ("outlast", "pydantic-ai-slim", "sqlalchemy", "asyncpg", "pgqueuer")


class DeployDatabase(ClusterDatabase):
    async def open_of(self, agent: str) -> int:
        """How much of an agent's work is not over."""
        query = (
            "SELECT (SELECT count(*) FROM turns WHERE ended_at IS NULL AND agent = $1) + (SELECT count(*) FROM tasks "
            "JOIN sessions ON sessions.id = tasks.session_id WHERE ended_at IS NULL AND agent = $1)"
        )
        async with self._connected() as connection:
            return await connection.fetchval(query, agent)

    async def waiting_for(self, agent: str) -> list[tuple[str, str]]:
        """The sessions of an agent with a turn that is not over, and that turn."""
        async with self._connected() as connection:
            rows = await connection.fetch(
                "SELECT session_id, id FROM turns WHERE ended_at IS NULL AND agent = $1", agent
            )
        return [(row["session_id"], row["id"]) for row in rows]


@dataclass(frozen=True, slots=True)
class Load:
    """How many clients talk at once, their pause between two messages, and for how long before and after."""

    clients: int
    pause: float
    seconds: float
    witnesses: int


@dataclass(frozen=True, slots=True)
class Ports:
    """Chosen before anybody listens: clients know all of them, as a balancer does."""

    old: int
    new: int
    removed: int


class Run:
    """`play` gives the exit code. What the judge looked at stays in its folder if there was a fault."""

    def __init__(self, postgres: Installation, *, load: Load, seed: int, results: Path | None) -> None:
        self._database = DeployDatabase(postgres)
        self._load, self._seed, self._results = load, seed, results
        self._folder = Path(tempfile.mkdtemp(prefix="outlast-deploy-"))
        self._ports = Ports(*(_free_port() for _ in range(3)))
        self._talking: list[asyncio.Task[None]] = []
        self._seconds: dict[str, float] = {}
        self._troubles: Counter[str] = Counter()

    async def play(self) -> int:
        began = time.monotonic()
        for each in ("record", "deaths", "waits", "exits"):
            (self._folder / f"{each}.jsonl").touch()
        package = next_release(self._folder / "next")
        await self._database.create()
        async with AsyncExitStack() as stack:
            old = await stack.enter_async_context(self._fleet("old", names.KEPT))
            removed = await stack.enter_async_context(self._fleet("old", names.REMOVED))
            new = await stack.enter_async_context(self._fleet("new", names.KEPT, package))
            again = await stack.enter_async_context(self._fleet("old", names.REMOVED, package, folder="again"))
            await self._roll(stack, old, removed, new, again)
        self._keep_logs()
        await self._database.copy(self._folder / "outlast.db")
        self._say("settled; judging")
        return self._report(await _judged(self._folder), time.monotonic() - began)

    def _fleet(self, version: str, agent: str, package: Path | None = None, *, folder: str | None = None) -> Fleet:
        place = self._folder / (folder or f"{version}-{agent}")
        place.mkdir()
        environment = {
            names.DATABASE: self._database.url,
            names.FOLDER: str(self._folder),
            names.VERSION: version,
            names.AGENT: agent,
            "PYTHONPATH": os.pathsep.join([*(() if package is None else (str(package),)), str(ROOT)]),
        }
        return Fleet(place, environment)

    async def _roll(self, stack: AsyncExitStack, old: Fleet, removed: Fleet, new: Fleet, again: Fleet) -> None:
        await old.run("upgrade", "db", "upgrade", APP)
        self._say(
            "the old version: two workers and a server, and a worker and a server of the agent that will be removed"
        )
        ports = self._ports
        leaving = await asyncio.gather(
            *(old.worker(f"old worker {at}", APP) for at in (1, 2)),
            removed.worker("removed worker", APP),
            old.api("old server", APP, port=ports.old),
            removed.api("removed server", APP, port=ports.removed),
        )
        token = leaving[3].token
        talks = Balancer([ports.old, ports.new], token, self._chance("talks"))
        reads = Balancer([ports.old, ports.new, ports.removed], token, self._chance("reads"))
        seas = Balancer([ports.removed], token, self._chance("seas"))
        stack.push_async_callback(talks.close)
        stack.push_async_callback(reads.close)
        stack.push_async_callback(seas.close)
        readers = Readers(reads)
        stack.push_async_callback(readers.close)
        record = Record(self._folder / "record.jsonl")
        stack.callback(record.close)
        clients = self._talk(stack, talks, readers, record)
        await asyncio.sleep(self._load.seconds)
        kept = LoadClient(talks, readers, record, self._chance("kept"), "kept", pause=0)
        gone = LoadClient(seas, readers, record, self._chance("gone"), "gone", pause=0)
        waiting: list[str] = []
        for _ in range(self._load.witnesses):
            for plan in ("guard", "patrol"):
                await kept.say((await kept.begin()).session_id, [plan])
            for plan in ("guard", "patrol", "vigil", "patrol+guard"):
                waiting.append((await gone.begin()).session_id)
                await gone.say(waiting[-1], [plan])
        await self._until(self._have_begun)
        await self._migrate(old, new)
        await asyncio.gather(
            *(new.worker(f"new worker {at}", APP) for at in (1, 2)), new.api("new server", APP, port=ports.new)
        )
        for each in leaving:
            await self._send_away(old if each in old.members else removed, each)
        self._say(f"the old version is gone; {names.REMOVED} has no worker any more")
        late = LoadClient(talks, readers, record, self._chance("late"), "late", pause=0)
        for session_id in waiting[:2]:
            await late.say(session_id, ["look"])
        await asyncio.sleep(self._load.seconds)
        await self._over(clients)
        await self._until(self._kept_is_settled)
        await self._note_waits(reads.clients[1])
        self._say(f"everything else has ended; {names.REMOVED} comes back")
        (self._folder / names.GATE).touch()
        await again.worker("worker of the agent that came back", APP)
        await self._until(self._database.is_settled)
        await self._caught_up(readers)
        readers.write(self._folder / "readers.jsonl")
        self._troubles = talks.troubles + reads.troubles

    def _talk(self, stack: AsyncExitStack, talks: Balancer, readers: Readers, record: Record) -> list[LoadClient]:
        clients = [
            LoadClient(talks, readers, record, self._chance(f"client {at}"), str(at), pause=self._load.pause)
            for at in range(self._load.clients)
        ]
        self._talking = [asyncio.create_task(each.run(), name=f"client {at}") for at, each in enumerate(clients)]
        stack.push_async_callback(self._hush)
        return clients

    async def _over(self, clients: list[LoadClient]) -> None:
        for each in clients:
            each.is_over = True
        await asyncio.wait(self._talking, timeout=_PATIENCE)
        for each in self._talking:
            if each.done():
                each.result()

    async def _hush(self) -> None:
        for each in self._talking:
            each.cancel()
        await asyncio.wait(self._talking)

    async def _have_begun(self) -> bool:
        """Every call that is to be open during the deploy runs."""
        begun = {
            each.call_id for each in ledger.read(self._folder / "ledger.jsonl") if each.tool in ("guard", "patrol")
        }
        return len(begun) >= self._load.witnesses * 6

    async def _kept_is_settled(self) -> bool:
        return await self._database.open_of(names.KEPT) == 0

    async def _migrate(self, old: Fleet, new: Fleet) -> None:
        began = time.monotonic()
        await new.run("upgrade", "db", "upgrade", APP)
        self._seconds["migration"] = round(time.monotonic() - began, 2)
        self._say(f"the schema is {REVISION} now, migrated under load; the old version goes on")
        try:
            late = await old.worker("late worker", APP)
        except NotReady as exc:
            code, said = 1, str(exc)
        else:
            code, said = await old.leave(late), late.said
        line = {"name": "late worker", "pid": 0, "code": code, "expected": 1, "words": f"schema {REVISION}"}
        self._note("exits", **line, said=said[-500:])

    async def _send_away(self, fleet: Fleet, member: Member) -> None:
        began = time.monotonic()
        code = await fleet.leave(member)
        self._seconds[f"SIGTERM to exit of {member.name}"] = round(time.monotonic() - began, 2)
        self._say(f"{member.name} was sent away, and ended with {code}")
        line = {"name": member.name, "pid": member.pid, "code": code, "expected": 0, "words": ""}
        self._note("exits", **line, said=member.said[-500:])

    async def _note_waits(self, client: Client) -> None:
        """What a user of the new version is told of the sessions whose agent nobody has."""
        for session_id, turn_id in await self._database.waiting_for(names.REMOVED):
            session = await client.sessions.get(session_id)
            outcome = await session.turn(turn_id).outcome(wait=0)
            self._note(
                "waits",
                session=session_id,
                turn=turn_id,
                state=session.state,
                turn_state=outcome.state,
                no_worker_for=outcome.no_worker_for,
            )

    async def _caught_up(self, readers: Readers) -> None:
        ends = await self._database.ends()
        for session_id in ends:
            readers.add(session_id)

        async def is_so() -> bool:
            return not readers.behind(ends)

        await self._until(is_so)

    async def _until(self, is_so: Callable[[], Awaitable[bool]]) -> None:
        """Wait for it; what never becomes so is for the judge to see."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            if await is_so():
                return
            await asyncio.sleep(0.1)

    def _keep_logs(self) -> None:
        with (self._folder / "workers.log").open("w") as kept:
            for each in sorted(self._folder.glob("*/*/stderr.log")):
                kept.write(each.read_text(errors="replace"))

    def _report(self, judged: dict[str, Any], seconds: float) -> int:
        faults: list[dict[str, Any]] = judged["faults"]
        totals = Counter(each["kind"] for each in faults)
        report = {
            **{kind: totals[kind] for kind in ALL_KINDS},
            "seen": dict(sorted(judged["seen"].items())),
            "seconds_of": self._seconds,
            "client_troubles": dict(self._troubles.most_common()),
            "seed": self._seed,
            "load": {"clients": self._load.clients, "pause": self._load.pause, "seconds": self._load.seconds},
            "examples": faults[:20],
            "seconds": round(seconds, 1),
            "versions": {
                "python": platform.python_version(),
                "postgresql": postgres_version().rpartition(" ")[2],
                **{name: version(name) for name in _PACKAGES},
            },
        }
        if self._results is not None:
            self._results.mkdir(exist_ok=True)
            (self._results / "deploy.json").write_text(json.dumps(report, indent=2) + "\n")
        self._say(", ".join(f"{kind} {totals[kind]}" for kind in ALL_KINDS))
        self._say(str(report["seen"]))
        for fault in faults[:20]:
            self._say(f"  {fault['kind']}: {fault['session_id']} {fault['what'][:400]}")
        if faults:
            self._say(f"  everything is in {self._folder}")
            return 1
        shutil.rmtree(self._folder)
        return 0

    def _note(self, file: str, **line: Any) -> None:
        with (self._folder / f"{file}.jsonl").open("a") as found:
            found.write(json.dumps(line) + "\n")

    def _say(self, words: str) -> None:
        print(f"deploy: {words}", flush=True)

    def _chance(self, of: str) -> random.Random:
        return random.Random(f"{of} {self._seed}")


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        return found.getsockname()[1]


async def _judged(folder: Path) -> dict[str, Any]:
    """What the judge, a process of its own, says about a folder."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "chaos.deploy.judge", str(folder), stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, "the judge failed"
    return json.loads(output)
