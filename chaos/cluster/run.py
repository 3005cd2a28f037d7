"""A run: the cluster is set up, loaded and broken; when it has settled it is judged, and the report written."""

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
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from chaos.client import Record
from chaos.cluster.agent import make_runtime
from chaos.cluster.balancer import Balancer
from chaos.cluster.client_load import ClientLoad, LoadClient, Pace
from chaos.cluster.desk import ClusterDesk
from chaos.cluster.faults import Injector, plan
from chaos.cluster.judge import ALL_KINDS
from chaos.cluster.postgres import OWNER, ClusterDatabase
from chaos.cluster.reading import Readers
from chaos.cluster.supervisor import Member, Supervisor, now_us, prepare
from chaos.people import People
from tests.support.stores.postgres import Installation, postgres_version

_WORKERS = 3
_APIS = 2
_OWNERS = 12
_SETTLE = 120.0
_LOOK_SECONDS = 0.5
"""How often the people of all owners look for what is needed."""
_LATE_READERS = 100
_NOTES = ("deaths", "freezes", "outages", "names", "record")
_PACKAGES = ("outlast", "pydantic-ai-slim", "sqlalchemy", "asyncpg", "pgqueuer")


@dataclass(frozen=True, slots=True)
class Load:
    rate: float
    clients: int
    gap: float
    freeze: float
    limit: float


class Run:
    """`play` gives the exit code. What the judge looked at stays in its folder if there was a fault."""

    def __init__(self, postgres: Installation, *, faults: int, seed: int, load: Load, name: str, results: Path) -> None:
        self._database = ClusterDatabase(postgres)
        self._faults, self._seed, self._load = faults, seed, load
        self._name, self._results = name, results
        self._folder = Path(tempfile.mkdtemp(prefix="outlast-cluster-"))
        self._done: Counter[str] = Counter()
        self._troubles: Counter[str] = Counter()
        self._complaints: list[str] = []
        self._loaded_us = (0, 0)
        self._busy: list[float] = []
        self._client_load: ClientLoad | None = None

    async def play(self) -> int:
        print(f"cluster chaos: {self._faults} faults, seed {self._seed}", flush=True)
        began = time.monotonic()
        for each in _NOTES:
            (self._folder / f"{each}.jsonl").touch()
        prepare()
        await self._database.create()
        async with make_runtime(self._folder, self._database.url, 0) as outlast:
            made = [await outlast.keys.make(f"{OWNER}{at}", "chaos") for at in range(_OWNERS)]
        members = [Member(f"worker {at}", None) for at in range(_WORKERS)]
        members += [Member(f"api {at}", _free_port()) for at in range(_APIS)]
        supervisor = Supervisor(self._folder, self._database.url, members)
        balancer = Balancer(
            [each.port for each in members if each.port is not None], [token for _, token in made], self._chance("line")
        )
        readers = Readers(balancer, self._chance("readers"), self._folder / "readers.jsonl")
        try:
            await supervisor.start()
            await self._loaded(supervisor, balancer, readers)
        finally:
            await readers.close()
            await balancer.close()
            self._complaints += await supervisor.close()
            self._troubles = balancer.troubles
        await self._database.copy(self._folder / "outlast.db")
        print(f"settled after {time.monotonic() - began:.0f} s; judging", flush=True)
        return self._report(await _judged(self._folder), time.monotonic() - began)

    async def _loaded(self, supervisor: Supervisor, balancer: Balancer, readers: Readers) -> None:
        await balancer.ready()
        await self._until(lambda: self._database.has_workers(_WORKERS))
        record, pace = Record(self._folder / "record.jsonl"), Pace(self._load.rate)

        def client(name: str) -> LoadClient:
            return LoadClient(balancer, readers, record, pace, self._chance(f"client {name}"), name)

        client_load = self._client_load = ClientLoad(client, pace, most=self._load.clients)
        injector = Injector(supervisor, self._database, client("stalls"), self._chance("whom"), self._load.freeze)
        begun_us = now_us()
        people = People(ClusterDesk(balancer), record, self._folder, self._chance("people"), look_seconds=_LOOK_SECONDS)
        answering = asyncio.create_task(people.run(), name="people")
        try:
            client_load.start()
            await self._break(injector, client_load)
            self._loaded_us = (begun_us, now_us())
            await client_load.finish(_SETTLE)
            await self._rest(balancer)
            await self._settle(readers, balancer)
            if answering.done():
                answering.result()  # raises what one of them failed with
        finally:
            self._done = injector.done
            answering.cancel()
            await asyncio.wait({answering})
            await client_load.close()
            record.close()

    async def _break(self, injector: Injector, client_load: ClientLoad) -> None:
        until = time.monotonic() + self._load.limit
        chance = self._chance("gaps")
        for number, kind in enumerate(plan(self._seed, self._faults)):
            await asyncio.sleep(self._load.gap * chance.uniform(0.5, 1.5))
            client_load.check()
            if time.monotonic() > until:
                break
            await injector.inject(kind)
            self._busy.append(os.getloadavg()[0])
            if (number + 1) % 20 == 0:
                print(f"{number + 1} faults", flush=True)
        await asyncio.sleep(self._load.gap)
        await injector.over()
        client_load.check()

    async def _rest(self, balancer: Balancer) -> None:
        """Pause what would fire for ever; what is late by then has fired first."""
        await self._until(self._database.none_is_due)
        for schedule_id, session_id in await self._database.every_minute():
            await balancer.ask(partial(_pause, balancer, session_id, schedule_id))

    async def _settle(self, readers: Readers, balancer: Balancer) -> None:
        """Work ends, connected readers catch up where they are, then the others, and some that come late."""
        await self._until(self._database.is_settled)
        deadline = time.monotonic() + _SETTLE
        ends = await self._database.ends()
        balancer.learn(await self._database.owners())
        readers.stand_still()
        await self._caught_up(readers, ends, deadline, is_following=True)
        chance = self._chance("late")
        for each in readers.behind(ends):
            readers.follow(each)
        for session_id in chance.sample(sorted(ends), min(len(ends), _LATE_READERS)):
            readers.add(session_id)
            readers.add(session_id, after=chance.randint(0, ends[session_id]))
        await self._caught_up(readers, ends, deadline, is_following=False)

    async def _until(self, is_so: Callable[[], Awaitable[bool]]) -> None:
        """Wait for it; what never becomes so is for the judge to see."""
        deadline = time.monotonic() + _SETTLE
        while time.monotonic() < deadline:
            if await is_so():
                return
            await asyncio.sleep(0.1)

    async def _caught_up(self, readers: Readers, ends: dict[str, int], deadline: float, *, is_following: bool) -> None:
        """Wait for every reader, or for those that follow; one that never gets there is for the judge to see."""
        while time.monotonic() < deadline:
            if not [each for each in readers.behind(ends) if not is_following or readers.is_following(each)]:
                return
            await asyncio.sleep(0.05)

    def _report(self, judged: dict[str, Any], seconds: float) -> int:
        faults: list[dict[str, Any]] = judged["faults"]
        faults += [{"kind": "errors", "session_id": "", "what": each} for each in self._complaints]
        totals = Counter(fault["kind"] for fault in faults)
        begun, over = self._loaded_us
        loaded_seconds = max(1e-6, (over - begun) / 1e6)
        turns = sum(begun <= at <= over for at in judged["turn_ends_us"])
        messages = sum(begun <= at <= over for at in judged["messages_us"])
        report = {
            "faults": sum(self._done.values()),
            "kills": self._done["kill worker"] + self._done["kill api"],
            **{kind: totals[kind] for kind in ALL_KINDS},
            "faults_by_kind": dict(sorted(self._done.items())),
            "recovery_seconds": _spread(judged["recoveries"]),
            "recovery_seconds_without_other_faults": _spread(judged["recoveries_alone"]),
            "delivery_seconds": _spread(judged["lags"]),
            "turns_per_second": round(turns / loaded_seconds, 2),
            "messages_per_second": round(messages / loaded_seconds, 2),
            "loaded_seconds": round(loaded_seconds, 1),
            "seen": dict(sorted(judged["seen"].items())),
            "client_troubles": dict(self._troubles.most_common()),
            "seed": self._seed,
            "load": {
                "messages_per_second": self._load.rate,
                "conversations_at_once": self._load.clients,
                "held_up": 0 if self._client_load is None else self._client_load.held_up,
                "freeze_seconds": self._load.freeze,
                "gap_seconds": self._load.gap,
                "cores": os.cpu_count(),
                "load_average": _spread(sorted(self._busy)),
            },
            "cluster": {"workers": _WORKERS, "apis": _APIS, "owners": _OWNERS},
            "examples": faults[:20],
            "seconds": round(seconds, 1),
            "versions": {
                "python": platform.python_version(),
                "postgresql": postgres_version().rpartition(" ")[2],
                **{name: version(name) for name in _PACKAGES},
            },
        }
        self._results.mkdir(exist_ok=True)
        path = self._results / f"cluster-{self._name}.json"
        path.write_text(json.dumps(report, indent=2) + "\n")
        shown = ", ".join(f"{kind} {totals[kind]}" for kind in ALL_KINDS)
        print(f"{report['faults']} faults: {shown}")
        print(f"recovery {report['recovery_seconds']}, {report['turns_per_second']} turns/s; report: {path.name}")
        for fault in faults[:20]:
            print(f"  {fault['kind']}: {fault['session_id']} {fault['what'][:400]}")
        if faults:
            print(f"  everything is in {self._folder}", flush=True)
            return 1
        shutil.rmtree(self._folder)
        return 0

    def _chance(self, of: str) -> random.Random:
        return random.Random(f"{of} {self._seed}")


async def _pause(balancer: Balancer, session_id: str, schedule_id: str, at: int) -> None:
    await balancer.client(session_id, at).schedules.pause(schedule_id)


def _spread(values: Sequence[float]) -> dict[str, float]:
    """Of sorted values."""
    if not values:
        return {"count": 0}
    at = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    picked = {name: values[min(len(values) - 1, int(len(values) * share))] for name, share in at.items()}
    return {"count": len(values), **{name: round(value, 3) for name, value in picked.items()}}


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        return found.getsockname()[1]


async def _judged(folder: Path) -> dict[str, Any]:
    """What the judge, a process of its own, says about a folder."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "chaos.cluster.judge", str(folder), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, "the judge failed"
    return json.loads(output)
