"""One round: clients, readers, and workers that die one after another until the last one may settle."""

import asyncio
import json
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.client import Client, Record
from chaos.link import Link, Worker
from chaos.people import LinkDesk, People
from chaos.plan import Kill
from chaos.reading import Readers
from chaos.worker import Caps, Job

_CLIENTS = 3
_PATIENCE = 8.0
"""Seconds to wait until a worker reaches its place; then it is killed where it is, as at any instant."""
_TRIES = 3
_SETTLE = 60.0


@dataclass(slots=True)
class Round:
    """`folder` holds everything the judge looks at, and stays if the judge finds a fault."""

    folder: Path
    seed: str
    kills: Sequence[Kill]
    caps: Caps
    done: Counter[str] = field(default_factory=Counter[str])
    seen: Counter[str] = field(default_factory=Counter[str])
    missed: list[Kill] = field(default_factory=list[Kill])
    """The kills whose place no worker reached in time."""
    link: Link = field(default_factory=Link)
    readers: Readers = field(init=False)
    started: int = 0

    def __post_init__(self) -> None:
        self.readers = Readers(self.link)

    async def run(self) -> list[dict[str, Any]]:
        """Play the round; gives what the judge found."""
        record = Record(self.folder / "record.jsonl")
        clients = [
            asyncio.create_task(self._client(record, number).run(), name=f"client {number}")
            for number in range(_CLIENTS)
        ]
        chance = random.Random(f"people {self.seed}")
        people = People(LinkDesk(self.link.ask), record, self.folder, chance)
        answering = asyncio.create_task(people.run(), name="people")
        try:
            for kill in self.kills:
                for _ in range(_TRIES):
                    if await self._life(kill):
                        break
                else:
                    self.missed.append(kill)
            await self._last_life(clients)
        finally:
            for each in (*clients, answering):
                each.cancel()
            await asyncio.wait({*clients, answering})
            await self.readers.close()
            record.close()
            if self.link.worker is not None:
                self.link.worker.process.kill()
                await self.link.worker.end()
        for each in clients:
            each.result()
        if not answering.cancelled():
            answering.result()
        self._write_readers()
        verdict = await judged(self.folder)
        self.seen.update(verdict["seen"])
        return verdict["faults"]

    def _client(self, record: Record, number: int) -> Client:
        chance = random.Random(f"client {self.seed} {number}")
        return Client(self.link, self.readers, record, chance, str(number))

    async def _start(self, kill: Kill | None) -> Worker:
        self.started += 1
        job = Job(self.folder, self.started, kill, self.caps)
        return await Worker.start(job, self.readers.take)

    async def _life(self, kill: Kill) -> bool:
        """One worker from its start to its death; whether it died where it was to."""
        worker = await self._start(kill)
        self.link.connect(worker, kill.place)
        name = kill.name
        if kill.place is None:
            await worker.ready.wait()
            await self._gone_within(worker, kill.after_seconds)
        else:
            if kill.place == "hand_over":
                await worker.ready.wait()
                await self._gone_within(worker, 0.4)
                worker.say("leave")
            if not await self._gone_within(worker, _PATIENCE):
                name = "instant"
        self.link.connect(None, None)
        worker.process.kill()
        code = await worker.end()
        self._write_death()
        assert code in (0, -signal.SIGKILL), f"a worker ended by itself with {code}: see {self.folder}/workers.log"
        self.done[name] += code != 0
        return code != 0 and name == kill.name

    async def _gone_within(self, worker: Worker, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await worker.gone.wait()
        except TimeoutError:
            return False
        return True

    async def _last_life(self, clients: Sequence[asyncio.Task[None]]) -> None:
        """Nothing kills this one: clients finish, work settles, readers catch up, late readers read it all."""
        self.link.is_over = True
        worker = await self._start(None)
        self.link.connect(worker, None)
        deadline = asyncio.get_running_loop().time() + _SETTLE
        await asyncio.wait(clients, timeout=_SETTLE)
        look: dict[str, Any] = {"open": ["?"], "ends": {}}
        while look["open"] and asyncio.get_running_loop().time() < deadline and not worker.gone.is_set():
            look = await worker.ask("look")
            await asyncio.sleep(0.05)
        chance = random.Random(f"late {self.seed}")
        for session_id, end in look["ends"].items():
            self.readers.add(session_id)
            self.readers.add(session_id, after=chance.randint(0, end))
        await self._caught_up(look["ends"], deadline)
        self.link.connect(None, None)
        worker.say("leave")
        code = await worker.end()
        assert code == 0, f"the last worker ended with {code}: see workers.log"

    async def _caught_up(self, ends: dict[str, int], deadline: float) -> None:
        """Wait for every reader; one that never gets there is for the judge to see."""
        while self.readers.behind(ends):
            await asyncio.sleep(0.05)
            if asyncio.get_running_loop().time() > deadline:
                return

    def _write_death(self) -> None:
        """The youngest worker is gone: what it had not committed by now it never will."""
        with (self.folder / "deaths.jsonl").open("a") as file:
            file.write(json.dumps({"worker": self.started, "at_us": time.time_ns() // 1_000}) + "\n")

    def _write_readers(self) -> None:
        with (self.folder / "readers.jsonl").open("w") as file:
            for each in self.readers.by_name.values():
                line = {"reader": each.name, "session": each.session_id, "after": each.after, "events": each.events}
                file.write(json.dumps(line) + "\n")


async def judged(folder: Path) -> dict[str, Any]:
    """What the judge, a process of its own, says about a folder."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "chaos.judge", str(folder), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, "the judge failed"
    return json.loads(output)
