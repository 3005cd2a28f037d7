"""A reader whose connection is cut again and again ends with exactly the log (P4, E1)."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import from_json

from tests.support.processes.serving_process import ServingProcess

CUTS = 200
APP = "tests.support.apps.long_turn_app:app"


@dataclass
class Told:
    """What a reader makes of a stream: facts in order, and each part's text joined by its offsets."""

    facts: list[tuple[int, str, str]] = field(default_factory=list[tuple[int, str, str]])
    texts: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, event: dict[str, Any]) -> None:
        number, data = event["number"], event["data"]
        if event["type"] == "part.delta":
            known = self.texts.get(data["part"], "")
            assert data["offset"] == len(known), f"{number}: a gap or a repeat in part {data['part']}"
            self.texts[data["part"]] = known + data["text"]
        else:
            assert not self.facts or number > self.facts[-1][0], f"{number} after {self.facts[-1]}"
            self.facts.append(
                (number, event["type"], data.get("part", "") if event["type"].startswith("part.") else "")
            )
        self._discard(data.get("dropped", ()))

    def _discard(self, parts: Sequence[str]) -> None:
        """What the log takes back: words of a response that a crash cut off, which later replays leave out."""
        for part in parts:
            self.texts.pop(part, None)
        self.facts = [each for each in self.facts if not each[2] or each[2] not in parts]

    @property
    def is_over(self) -> bool:
        return bool(self.facts) and self.facts[-1][1] in ("turn.completed", "turn.failed")


@dataclass
class CutReader:
    """Reads a stream over a bare socket and drops the connection after some bytes, wherever that is."""

    port: int
    token: str
    path: str
    chance: random.Random
    told: Told = field(default_factory=Told)
    position: str = "0"
    cuts: int = 0

    async def read(self, until: int) -> None:
        """Until so many cuts were made; after that, to the end without one."""
        while self.cuts < until and not self.told.is_over:
            await self._connect(self.chance.randrange(200, 12_000))
            self.cuts += 1

    async def read_to_the_end(self) -> None:
        while not self.told.is_over:
            await self._connect(None)

    async def _connect(self, most: int | None) -> None:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            await asyncio.sleep(0.02)  # the server is being started again
            return
        try:
            head = (
                f"GET {self.path} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {self.token}\r\n"
                f"Accept: text/event-stream\r\nLast-Event-ID: {self.position}\r\n\r\n"
            )
            writer.write(head.encode())
            await self._take(reader, most)
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.transport.abort()

    async def _take(self, reader: asyncio.StreamReader, most: int | None) -> None:
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        taken, rest = 0, b""
        while not self.told.is_over:
            size = int(await reader.readuntil(b"\r\n"), 16)
            chunk = await reader.readexactly(size + 2)
            if size == 0:
                return
            chunk = chunk[:-2] if most is None else chunk[:-2][: most - taken]
            taken += len(chunk)
            rest = self._frames(rest + chunk)
            if most is not None and taken >= most:
                return

    def _frames(self, received: bytes) -> bytes:
        """Take the whole frames; half of one is lost with the connection, as in a browser."""
        *frames, rest = received.split(b"\n\n")
        for each in frames:
            lines = [line for line in each.split(b"\n") if not line.startswith(b":")]
            fields = dict(line.split(b": ", 1) for line in lines if line)
            if b"data" in fields:
                event = from_json(fields[b"data"])
                if event["number"] is not None and not self.told.is_over:
                    self.told.add(event)
                    self.position = fields[b"id"].decode()
        return rest


async def begin(server: ServingProcess, seed: int) -> CutReader:
    async with server.client() as client:
        session_id = (await client.post("/v1/sessions", json={})).json()["id"]
        path = f"/v1/sessions/{session_id}"
        await client.post(f"{path}/messages", json={"text": "measure"})
    return CutReader(server.port, server.place.token, f"{path}/events", random.Random(seed))


async def whole(server: ServingProcess, path: str) -> Told:
    """The log as pages give it, read in one go."""
    told, position = Told(), 0
    async with server.client() as client:
        while (page := (await client.get(path, params={"after": position})).json())["items"]:
            for each in page["items"]:
                told.add(each)
            position = page["next"]
    return told


@pytest.mark.timeout(180)
@pytest.mark.parametrize("has_kills", [False, True], ids=["cuts", "cuts and kills"])
async def test_a_stream_cut_two_hundred_times_is_exact(tmp_path: Path, has_kills: bool) -> None:
    """P4, E1: one turn of 5,000 events, 200 cuts at random bytes, folding at its end; also when the server dies."""
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}")
    with ExitStack() as servers:
        server = servers.enter_context(ServingProcess(tmp_path, app=APP))
        reader = await begin(server, seed)
        for until in (CUTS // 3, CUTS * 2 // 3) if has_kills else ():
            await reader.read(until)
            server.kill()
            server = servers.enter_context(ServingProcess(tmp_path, app=APP, port=reader.port))
        await reader.read(CUTS)
        assert reader.cuts == CUTS, "the turn was over before all cuts were made"
        await reader.read_to_the_end()
        log = await whole(server, reader.path)
        assert reader.told.facts == log.facts
        assert reader.told.texts == log.texts
        assert sum(map(len, reader.told.texts.values())) > 5_000
        assert log.facts[-1][0] >= 5_000
        assert log.facts[-1][1] == "turn.completed"
        starts = [type_ for _, type_, _ in log.facts if type_ in ("turn.started", "turn.resumed")]
        assert len(starts) == (3 if has_kills else 1)
