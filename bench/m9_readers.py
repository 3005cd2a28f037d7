"""M9: a thousand readers of one session, one that never reads; and the replay of a hundred thousand events."""

import asyncio
import tempfile
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_core import from_json

from bench.measure import Report, Target, milliseconds, quantile
from bench.server_process import Place, serving
from outlast import Outlast, Settings
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.runtime import LOCAL_OWNER
from outlast.testing import ScriptedModel

ID = "M9"
_READERS = 1_000
_EVENTS = 100_000


@dataclass
class Reader:
    """Over a bare socket, so that the client costs little; notes how far behind each event is when it comes."""

    place: Place
    path: str
    behind: list[float] = field(default_factory=list[float])
    count: int = 0

    async def connect(self) -> asyncio.StreamReader:
        reader, self.writer = await asyncio.open_connection("127.0.0.1", self.place.port, limit=2**20)
        head = (
            f"GET {self.path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {self.place.token}\r\n"
            "Accept: text/event-stream\r\n\r\n"
        )
        self.writer.write(head.encode())
        await reader.readuntil(b"\r\n\r\n")
        return reader

    async def follow(self, reader: asyncio.StreamReader) -> None:
        """Until the turn has ended."""
        async for line in reader:
            if line.startswith(b"data: "):
                now, event = time.time(), from_json(line[6:])
                self.count += 1
                if event["type"] == "part.delta":
                    self.behind.append(now - datetime.fromisoformat(event["at"]).timestamp())
                if event["type"].startswith("turn.") and event["type"] in ("turn.completed", "turn.failed"):
                    break
        self.writer.close()


def run() -> Report:
    report = Report(
        ID, "1,000 SSE readers; replay of 100,000 events", "SQLite file, WAL, full", columns=("what", "value")
    )
    with tempfile.TemporaryDirectory() as folder:
        session_id = asyncio.run(_long_log(Path(folder) / "bench.db"))
        with serving(Path(folder)) as place:
            numbers = asyncio.run(_measure(place, session_id))
    report.numbers = numbers
    report.rows = [
        ("readers behind, p50", milliseconds(numbers["behind_p50_ms"] / 1e3)),
        ("readers behind, p99", milliseconds(numbers["behind_p99_ms"] / 1e3)),
        ("replay, events/s", f"{numbers['replay_events_per_s']:,.0f}"),
        ("server's memory before readers", f"{numbers['memory_before_mb']:.0f} MB"),
        ("with 1,000 readers", f"{numbers['memory_with_mb']:.0f} MB"),
        ("after they left, and again", f"{numbers['memory_after_mb']:.0f}, {numbers['memory_again_mb']:.0f} MB"),
    ]
    report.targets = [
        Target("behind, p99 ms", numbers["behind_p99_ms"], 250, is_most=True),
        Target("replay, events/s", numbers["replay_events_per_s"], 50_000),
        Target(
            "memory after the second thousand, of the first",
            numbers["memory_again_mb"] / numbers["memory_after_mb"],
            1.1,
            is_most=True,
        ),
    ]
    return report


async def _long_log(path: Path) -> str:
    """A session with a hundred thousand events, written as a turn would write them."""
    async with Outlast(Agent(ScriptedModel([])), database=path, settings=Settings(durability="normal")) as outlast:
        session = await outlast.owned_by(LOCAL_OWNER).create()
        for begin in range(0, _EVENTS, 1_000):
            drafts = [
                Draft(EventType.PART_DELTA, {"part": "0.0", "offset": at * 6, "text": "words "})
                for at in range(begin, begin + 1_000)
            ]
            await outlast.database.transaction(lambda unit, drafts=drafts: unit.append(session.id, drafts), name="fill")
        return session.id


async def _measure(place: Place, long_session: str) -> dict[str, float]:
    numbers: dict[str, float] = {"replay_events_per_s": await _replay(place, long_session)}
    numbers["memory_before_mb"] = place.process.memory_info().rss / 2**20
    behind = await _thousand(place, numbers)
    numbers["memory_after_mb"] = place.process.memory_info().rss / 2**20
    await _thousand(place, {})
    numbers["memory_again_mb"] = place.process.memory_info().rss / 2**20
    return {
        **numbers,
        "behind_p50_ms": quantile(behind, 0.5) * 1e3,
        "behind_p99_ms": quantile(behind, 0.99) * 1e3,
    }


async def _replay(place: Place, session_id: str) -> float:
    reader = Reader(place, f"/v1/sessions/{session_id}/events")
    stream = await reader.connect()
    began, seen = time.perf_counter(), 0
    while seen < _EVENTS:
        seen += (await stream.read(2**20)).count(b"\nid: ")
    seconds = time.perf_counter() - began
    reader.writer.close()
    return seen / seconds


async def _thousand(place: Place, numbers: dict[str, float]) -> list[float]:
    async with place.client() as client:
        session_id = (await client.post("/v1/sessions", json={})).json()["id"]
        path = f"/v1/sessions/{session_id}"
        readers = [Reader(place, f"{path}/events") for _ in range(_READERS)]
        streams: list[asyncio.StreamReader] = []
        for at in range(0, _READERS, 50):
            streams += await asyncio.gather(*(each.connect() for each in readers[at : at + 50]))
        stuck = Reader(place, f"{path}/events")
        await stuck.connect()
        numbers["memory_with_mb"] = place.process.memory_info().rss / 2**20
        await client.post(f"{path}/messages", json={"text": "speak"})
        following: list[Any] = [each.follow(stream) for each, stream in zip(readers, streams, strict=True)]
        await asyncio.gather(*following)
        stuck.writer.close()
    assert len({each.count for each in readers}) == 1, "some reader saw less"
    return [each for reader in readers for each in reader.behind]
