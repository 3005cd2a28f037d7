"""M17, the feed's half: a session of 5,000 events over the owner's feed, from its beginning and from a position.

Beside the session's own route, ten at once, and how long others wait meanwhile. And what a reader of a running session
costs the server: its processor's time for a turn with and without readers.
"""

import asyncio
import tempfile
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import httpx2
from pydantic_ai import Agent

from bench.m9_readers import Reader
from bench.measure import Report, Target, milliseconds, quantile
from bench.server_process import Place, serving
from outlast import Outlast, Settings
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.ids import TurnId
from outlast.runtime import LOCAL_OWNER
from outlast.testing import ScriptedModel

ID = "M17"
_EVENTS = 5_000
_ROUNDS = 5
_AT_ONCE = 10
_READERS = 200
_TURNS = 10
_TURN = TurnId("trn_bench")


def run() -> Report:
    with tempfile.TemporaryDirectory() as folder:
        session_id = asyncio.run(_long_log(Path(folder) / "bench.db"))
        with serving(Path(folder)) as place:
            numbers = asyncio.run(_measure(place, session_id))
    report = Report(ID, "a session of 5,000 events over the owner's feed", "SQLite file, WAL, full", numbers=numbers)
    report.columns = ("what", "value")
    report.rows = [
        ("the session's route, whole", milliseconds(numbers["session_route_s"])),
        ("the feed, whole", milliseconds(numbers["feed_s"])),
        ("the feed from 200 events before the end", milliseconds(numbers["feed_tail_s"])),
        ("first byte of the feed", milliseconds(numbers["feed_first_byte_s"])),
        (f"{_AT_ONCE} at once, each", milliseconds(numbers["at_once_s"])),
        ("others, p99 alone", milliseconds(numbers["others_alone_p99_s"])),
        ("others, p99 beside ten replays of the session's route", milliseconds(numbers["others_route_p99_s"])),
        ("others, p99 beside ten replays of the feed", milliseconds(numbers["others_p99_s"])),
        ("processor a turn and reader: the session's route", milliseconds(numbers["reader_route_cpu_s"])),
        ("processor a turn and reader: the feed", milliseconds(numbers["reader_feed_cpu_s"])),
    ]
    report.targets = [
        Target("the feed, of the session's route", numbers["feed_s"] / numbers["session_route_s"], 2, is_most=True),
        Target("first byte, ms", numbers["feed_first_byte_s"] * 1e3, 50, is_most=True),
        Target("others' p99, of alone", numbers["others_p99_s"] / numbers["others_alone_p99_s"], 2, is_most=True),
        Target("processor a turn and reader, ms", numbers["reader_feed_cpu_s"] * 1e3, 0.1, is_most=True),
    ]
    return report


async def _long_log(path: Path) -> str:
    """Turns as they are written: changes of state, calls, and words in many deltas."""
    async with Outlast(Agent(ScriptedModel([])), database=path, settings=Settings(durability="normal")) as outlast:
        session = await outlast.owned_by(LOCAL_OWNER).create()
        for turn in range(_EVENTS // 20):
            deltas = [
                Draft(EventType.PART_DELTA, {"part": f"{turn}.0", "offset": at * 6, "text": "words "}, _TURN)
                for at in range(14)
            ]
            drafts = [
                Draft(EventType.TURN_QUEUED, {"origin": "user", "agent": "bench", "model": None}, _TURN),
                Draft(EventType.TURN_STARTED, {"attempt": 1}, _TURN),
                Draft(EventType.PART_STARTED, {"part": f"{turn}.0", "kind": "text"}, _TURN),
                *deltas,
                Draft(EventType.PART_ENDED, {"part": f"{turn}.0"}, _TURN),
                Draft(EventType.RESPONSE_COMPLETED, {"usage": {}}, _TURN),
                Draft(EventType.SESSION_HELD, {"reason": "bench"}),
            ]
            await outlast.database.transaction(lambda unit, drafts=drafts: unit.append(session.id, drafts), name="fill")
        return session.id


async def _measure(place: Place, session_id: str) -> dict[str, float]:
    whole, feed = f"/v1/sessions/{session_id}/events", f"/v1/events?sessions={session_id}"
    async with place.client() as client:
        now = (await client.get("/v1/events", params={"after": "now"})).json()["next"]
    tail = f"/v1/events?after={now}&sessions={session_id}:{_EVENTS - 200}"
    numbers: dict[str, float] = {}
    taken = {each: [await _replay(place, each) for _ in range(_ROUNDS)] for each in (whole, feed, tail)}
    numbers["session_route_s"] = min(seconds for _, seconds in taken[whole])
    numbers["feed_s"] = min(seconds for _, seconds in taken[feed])
    numbers["feed_tail_s"] = min(seconds for _, seconds in taken[tail])
    numbers["feed_first_byte_s"] = min(first for first, _ in taken[feed])
    numbers["others_alone_p99_s"] = await _others(place, asyncio.sleep(2.0))
    numbers["others_route_p99_s"] = await _others(place, _at_once(place, whole, {}))
    numbers["others_p99_s"] = await _others(place, _at_once(place, feed, numbers))
    alone = await _cost_of_turn(place, 0, "")
    numbers["turn_cpu_s"] = alone
    numbers["reader_route_cpu_s"] = (await _cost_of_turn(place, _READERS, "session") - alone) / _READERS
    numbers["reader_feed_cpu_s"] = (await _cost_of_turn(place, _READERS, "feed") - alone) / _READERS
    return numbers


async def _replay(place: Place, path: str) -> tuple[float, float]:
    """Seconds to the first byte and to the last event of the log."""
    reader, began = Reader(place, path), time.perf_counter()
    stream = await reader.connect()
    first, rest, end = 0.0, b"", b'"number":%d,' % _last(path)
    while end not in rest:
        chunk = await stream.read(2**20)
        first = first or time.perf_counter() - began
        rest = rest[-100:] + chunk
    seconds = time.perf_counter() - began
    reader.writer.close()
    return first, seconds


def _last(path: str) -> int:
    return _EVENTS + 1


async def _at_once(place: Place, path: str, numbers: dict[str, float]) -> None:
    """Again and again, for about two seconds."""
    until, seconds = time.perf_counter() + 2.0, list[float]()
    while time.perf_counter() < until:
        found = await asyncio.gather(*(_replay(place, path) for _ in range(_AT_ONCE)))
        seconds += [each for _, each in found]
    numbers["at_once_s"] = quantile(seconds, 0.5)


async def _others(place: Place, beside: Coroutine[Any, Any, None]) -> float:
    """The p99 of a small request while something else goes on."""
    going = asyncio.ensure_future(beside)
    seconds: list[float] = []
    async with place.client() as client:
        await client.get("/healthz")
        while not going.done():
            seconds.append(await _ask(client))
            await asyncio.sleep(0.005)
    await going
    return quantile(seconds, 0.99)


async def _ask(client: httpx2.AsyncClient) -> float:
    began = time.perf_counter()
    (await client.get("/v1/sessions", params={"limit": 1})).raise_for_status()
    return time.perf_counter() - began


async def _cost_of_turn(place: Place, readers: int, kind: str) -> float:
    """Processor's time of the server for a short turn; the least of three."""
    costs: list[float] = []
    async with place.client() as client:
        for _ in range(3):
            session_id = (await client.post("/v1/sessions", json={})).json()["id"]
            path = (
                f"/v1/sessions/{session_id}/events"
                if kind == "session"
                else (f"/v1/events?after=now&sessions={session_id}")
            )
            following = [Reader(place, path) for _ in range(readers)]
            streams = [await each.connect() for each in following]
            await asyncio.sleep(0.5)
            began = _cpu(place)
            for _ in range(_TURNS):
                ends = [_to_end(stream) for stream in streams]
                await client.post(f"/v1/sessions/{session_id}/messages", json={"text": "hi"})
                await asyncio.gather(*ends, client.get(f"/v1/sessions/{session_id}/result", params={"wait": 60}))
            costs.append((_cpu(place) - began) / _TURNS)
            for each in following:
                each.writer.close()
    return min(costs)


async def _to_end(stream: asyncio.StreamReader) -> None:
    await stream.readuntil(b'"type":"turn.completed"')


def _cpu(place: Place) -> float:
    times = place.process.cpu_times()
    return times.user + times.system
