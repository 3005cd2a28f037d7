"""The processes of the cluster as the driver has them: started, killed, frozen, and started again."""

import asyncio
import json
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from chaos.cluster.process import PRELOADED, Post, main

_PROCESSES = multiprocessing.get_context("forkserver")
_LOOK_SECONDS = 0.5
_EXIT_SECONDS = 20.0


def prepare() -> None:
    """Once per driver: processes are forked from a server that has imported everything and done nothing."""
    _PROCESSES.set_forkserver_preload(list(PRELOADED))


def now_us() -> int:
    return time.time_ns() // 1_000


@dataclass(slots=True)
class Member:
    """A role in the cluster, and the process that has it at the moment."""

    name: str
    port: int | None
    number: int = 0
    process: BaseProcess | None = None
    channel: socket.socket | None = None
    is_frozen: bool = False
    is_away: bool = False
    """The driver has killed it and will start it again: nobody else need look after it."""

    @property
    def is_up(self) -> bool:
        return not self.is_frozen and not self.is_away and self.process is not None

    @property
    def pid(self) -> int:
        assert self.process is not None
        assert self.process.pid is not None
        return self.process.pid


@dataclass(slots=True)
class Supervisor:
    """Notes every death and every freeze for the judge. Whoever ends by itself is started again, and that is noted."""

    folder: Path
    url: str
    members: list[Member]
    numbers: "count[int]" = field(default_factory=lambda: count(1))
    _looking: asyncio.Task[None] | None = None

    @property
    def workers(self) -> list[Member]:
        return [each for each in self.members if each.port is None]

    @property
    def apis(self) -> list[Member]:
        return [each for each in self.members if each.port is not None]

    async def start(self) -> None:
        for each in self.members:
            await self.start_one(each)
        self._looking = asyncio.create_task(self._look(), name="look after the processes")

    async def start_one(self, member: Member) -> None:
        ours, theirs = socket.socketpair()
        member.number = next(self.numbers)
        post = Post(self.folder, self.url, member.number, member.port)
        member.process = _PROCESSES.Process(target=main, args=(post, theirs), name=member.name, daemon=True)
        await asyncio.to_thread(member.process.start)
        theirs.close()
        member.channel = ours
        member.is_away = False

    async def kill(self, member: Member) -> None:
        """SIGKILL; gone when this returns. A frozen one can be killed too."""
        assert member.process is not None
        member.is_away = True
        asked_us = now_us()
        member.process.kill()
        await asyncio.to_thread(member.process.join)
        self.note("deaths", worker=member.number, asked_us=asked_us, at_us=now_us(), name=member.name, by="driver")
        self._drop(member)

    async def freeze(self, member: Member, seconds: float) -> None:
        """SIGSTOP, and SIGCONT so much later."""
        member.is_frozen = True
        from_us = now_us()
        os.kill(member.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            os.kill(member.pid, signal.SIGCONT)
            member.is_frozen = False
            self.note("freezes", worker=member.number, from_us=from_us, to_us=now_us(), name=member.name)

    async def close(self) -> list[str]:
        """Tell all to leave, as an operator does; gives those that did not end well."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait({self._looking})
        found = await asyncio.gather(*(self._dismiss(each) for each in self.members))
        return [complaint for complaints in found for complaint in complaints]

    def note(self, file: str, **line: Any) -> None:
        with (self.folder / f"{file}.jsonl").open("a") as found:
            found.write(json.dumps(line) + "\n")

    async def _dismiss(self, member: Member) -> list[str]:
        if member.process is None or member.channel is None:
            return []
        member.process.terminate()
        await asyncio.to_thread(member.process.join, _EXIT_SECONDS)
        if member.process.is_alive():
            member.process.kill()
            await asyncio.to_thread(member.process.join)
        code = member.process.exitcode
        self._drop(member)
        return [] if code == 0 else [f"{member.name} ended with {code} when it was told to leave"]

    async def _look(self) -> None:
        while True:
            for each in self._ended():
                code = None if each.process is None else each.process.exitcode
                self.note(
                    "deaths", worker=each.number, asked_us=now_us(), at_us=now_us(), name=each.name, by=f"exit {code}"
                )
                self._drop(each)
                await self.start_one(each)
            await asyncio.sleep(_LOOK_SECONDS)

    def _ended(self) -> Iterator[Member]:
        for each in self.members:
            if not each.is_away and each.process is not None and not each.process.is_alive():
                yield each

    def _drop(self, member: Member) -> None:
        if member.process is not None:
            member.process.close()
            member.process = None
        if member.channel is not None:
            member.channel.close()
            member.channel = None
