"""A thousand readers of one session, and one that never reads: nobody else is slowed, nothing is left (E4, E5, P8)."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import httpx2
import psutil
import pytest
from pydantic_ai import Agent

from outlast import Outlast, Settings
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.testing import ScriptedModel
from tests.support.processes.serving_process import ServingProcess

READERS = 1_000
TOGETHER = 50
SPARE_BYTES = 24 * 2**20
LONG = 40_000


@dataclass
class Reader:
    """Over a bare socket; counts the frames until the turn has ended."""

    port: int
    token: str
    path: str
    ids: list[bytes] = field(default_factory=list[bytes])
    writer: asyncio.StreamWriter | None = None

    async def connect(self) -> asyncio.StreamReader:
        reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = (
            f"GET {self.path} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {self.token}\r\n"
            "Accept: text/event-stream\r\n\r\n"
        )
        self.writer.write(head.encode())
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        return reader

    async def follow(self, stream: asyncio.StreamReader) -> None:
        async for line in stream:
            if line.startswith(b"id: "):
                self.ids.append(line)
            if b'"turn.completed"' in line:
                break
        self.leave()

    def stop_reading(self) -> None:
        assert self.writer is not None
        cast(asyncio.Transport, self.writer.transport).pause_reading()

    def leave(self) -> None:
        assert self.writer is not None
        self.writer.transport.abort()


async def a_long_log(database: Path) -> str:
    """A session whose log is far larger than what lies between a server and a client that does not read."""
    drafts = [
        Draft(EventType.PART_DELTA, {"part": "0.0", "offset": at * 500, "text": "x" * 500}) for at in range(1_000)
    ]
    async with Outlast(Agent(ScriptedModel([])), database=database, settings=Settings(durability="normal")) as outlast:
        session = await outlast.sessions.create()
        for _ in range(LONG // 1_000):
            await outlast.database.transaction(lambda unit: unit.append(session.id, drafts), name="fill")
        return session.id


async def a_thousand(server: ServingProcess, client: httpx2.AsyncClient, long_session: str) -> None:
    """Connect, be told a whole turn, leave; one more asks for far more than fits on the way, and never reads."""
    path = f"/v1/sessions/{(await client.post('/v1/sessions', json={})).json()['id']}"
    port, token = server.port, server.place.token
    readers = [Reader(port, token, f"{path}/events") for _ in range(READERS)]
    streams: list[asyncio.StreamReader] = []
    for at in range(0, READERS, TOGETHER):
        streams += await asyncio.gather(*(each.connect() for each in readers[at : at + TOGETHER]))
    stuck = Reader(port, token, f"/v1/sessions/{long_session}/events")
    await stuck.connect()
    stuck.stop_reading()
    await client.post(f"{path}/messages", json={"text": "speak"})
    await asyncio.gather(*(each.follow(stream) for each, stream in zip(readers, streams, strict=True)))
    assert len(readers[0].ids) >= 10
    assert all(each.ids == readers[0].ids for each in readers)
    stuck.leave()


async def until_all_have_left(client: httpx2.AsyncClient) -> None:
    """What was there for a reader is let go at once: no request but this one is being answered."""
    while "outlast_http_open_requests 1.0" not in (await client.get("/metrics")).text:  # noqa: ASYNC110
        await asyncio.sleep(0.05)


@pytest.mark.timeout(180)
async def test_a_thousand_readers_and_one_that_never_reads(tmp_path: Path) -> None:
    """E4, E5, P8: all are told everything; memory is flat after they have left, however often they come."""
    long_session = await a_long_log(tmp_path / "speaking.db")
    with ServingProcess(tmp_path, app="tests.support.apps.speaking_app:app") as server:
        async with server.client() as client:
            await a_thousand(server, client, long_session)
            await until_all_have_left(client)
            process = psutil.Process(server.process.pid)
            before = process.memory_info().rss
            await a_thousand(server, client, long_session)
            await until_all_have_left(client)
            assert process.memory_info().rss - before < SPARE_BYTES
            assert process.num_fds() < 100
