"""Streams that follow: replay, then whatever comes, complete and in order, at any pace."""

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa

from outlast.errors import StoreUnavailable
from outlast.events import signals
from outlast.events.event import Draft, Event
from outlast.events.signals import LocalSignals, log_topic
from outlast.events.stream import EventStream, Page
from outlast.events.types import EventType
from outlast.ids import SessionId, TurnId
from outlast.store.database import Database
from outlast.store.outbox import Committed, SilentOutbox
from outlast.store.repositories import events
from tests.support.moments.commits import let_run
from tests.support.stores.store import append, new_session, note

TURN = TurnId("trn_1")


class Signalling(SilentOutbox):
    """Tells readers of commits, as the runtime does."""

    def __init__(self) -> None:
        self.signals = LocalSignals()
        self.is_silent = False

    def deliver(self, committed: Committed) -> None:
        if not self.is_silent:
            self.signals.publish({log_topic(event.session_id) for event in committed.events}, committed.news)


class Log:
    """A session's log with readers."""

    def __init__(self, database: Database, session_id: SessionId) -> None:
        self.database = database
        self.session_id = session_id
        self.outbox = Signalling()
        self.reads = 0
        self.failing = 0
        database.attach(self.outbox)

    def stream(self, *, after: int = 0, **options: Any) -> EventStream:
        return EventStream(self._read, self.outbox.signals, self.session_id, after=after, **options)

    async def _read(self, session_id: SessionId, after: int, limit: int) -> Page | None:
        self.reads += 1
        if self.failing:
            self.failing -= 1
            raise StoreUnavailable("for a moment")

        def page(connection: sa.Connection) -> Page | None:
            bounds = events.bounds(connection, session_id)
            if bounds is None:
                return None
            return Page(events.page(connection, session_id, max(after, bounds[0] - 1), limit), *bounds)

        return await self.database.read(page)


@pytest.fixture
async def log(database: Database) -> Log:
    return Log(database, await new_session(database))


async def take(stream: EventStream, count: int) -> list[Event]:
    return [await anext(stream) for _ in range(count)]


async def test_a_reader_replays_and_then_follows_without_a_seam(log: Log) -> None:
    """E1, P4: over several pages, from any position, while more is appended; nothing twice, nothing missed."""
    await append(log.database, log.session_id, *(note(n) for n in range(1, 2_101)))
    streams = [log.stream(after=position) for position in (0, 1, 999, 1_000, 1_001, 2_099, 2_100)]

    async def write() -> None:
        for n in range(2_101, 2_141):
            await append(log.database, log.session_id, note(n))

    async def read(stream: EventStream) -> list[int | None]:
        async with stream:
            start = stream.position
            return [event.number for event in await take(stream, 2_140 - start)]

    *seen, _ = await asyncio.gather(*(read(each) for each in streams), write())
    for numbers, position in zip(seen, (0, 1, 999, 1_000, 1_001, 2_099, 2_100), strict=True):
        assert numbers == list(range(position + 1, 2_141))


async def test_a_lost_signal_costs_time_only(log: Log) -> None:
    """DESIGN 3: without any signal the reader looks again by itself."""
    async with log.stream() as stream:
        await append(log.database, log.session_id, note("one"))
        assert (await anext(stream)).number == 1
        log.outbox.is_silent = True
        waiting = asyncio.create_task(take(stream, 1))
        await append(log.database, log.session_id, note("two"))
        async with asyncio.timeout(60):
            assert [event.number for event in await waiting] == [2]


async def test_a_reader_that_has_caught_up_takes_what_the_signal_brings(log: Log) -> None:
    """E1, P4: the same events that a replay gives, without a look at the database."""
    data = {"part": "1.1.0", "offset": 0, "text": 'high \N{WATER WAVE} "2.4 m"', "numbers": (1, 2), "none": None}
    await append(log.database, log.session_id, note("one"))
    async with log.stream() as stream:
        await anext(stream)
        waiting = asyncio.create_task(take(stream, 2))
        await let_run()
        reads = log.reads
        await append(log.database, log.session_id, Draft(EventType.PART_DELTA, data, TURN), note("three"))
        live = await waiting
        assert log.reads == reads
    async with log.stream(after=1, is_following=False) as replay:
        assert [event async for event in replay] == live


async def test_a_reader_that_missed_a_signal_looks(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """P4: what the next one brings does not begin where it stands."""
    monkeypatch.setattr(signals, "RECHECK_SECONDS", 300.0)
    async with log.stream() as stream:
        await append(log.database, log.session_id, note("one"))
        await anext(stream)
        waiting = asyncio.create_task(take(stream, 2))
        await let_run()
        log.outbox.is_silent = True
        await append(log.database, log.session_id, note("two"))
        log.outbox.is_silent = False
        await append(log.database, log.session_id, note("three"))
        async with asyncio.timeout(60):
            assert [event.number for event in await waiting] == [2, 3]


async def test_a_following_reader_sees_text_once_while_it_is_folded(log: Log) -> None:
    """P4: folding runs between any two reads of a reader in the middle of the text."""
    words = [f"{n} " for n in range(300)]
    drafts = [Draft(EventType.PART_STARTED, {"part": "1.1.0", "kind": "text"}, TURN)]
    offset = 0
    for word in words:
        drafts.append(Draft(EventType.PART_DELTA, {"part": "1.1.0", "offset": offset, "text": word}, TURN))
        offset += len(word)
    await append(log.database, log.session_id, *drafts[:150])
    readers = [log.stream() for _ in range(5)]
    have = [
        "".join(event.data.get("text", "") for event in await take(each, 10 + 30 * n)) for n, each in enumerate(readers)
    ]
    await append(log.database, log.session_id, *drafts[150:], Draft(EventType.PART_ENDED, {"part": "1.1.0"}, TURN))
    for each in readers:
        fresh = log.stream(after=each.position)
        readers[readers.index(each)] = fresh
        await each.aclose()
    await log.database.transaction(lambda unit: events.fold_parts(unit, log.session_id, TURN, after=0), name="fold")
    for n, each in enumerate(readers):
        text = have[n]
        async with each:
            async for event in each:
                if event.type == EventType.PART_ENDED:
                    break
                assert event.data["offset"] == len(text)
                text += event.data["text"]
        assert text == "".join(words)


async def test_a_slow_reader_is_told_how_far_it_is_behind(log: Log) -> None:
    """E4, P8: it costs nobody anything, is told once with the position to resume from, and then gets everything."""
    await append(log.database, log.session_id, note("first"))
    async with log.stream(max_lag=50) as stream:
        assert (await anext(stream)).number == 1
        waiting = asyncio.create_task(take(stream, 1))
        await append(log.database, log.session_id, note("second"))
        assert [event.number for event in await waiting] == [2]
        await append(log.database, log.session_id, *(note(n) for n in range(100)))
        lagged = await anext(stream)
        assert (lagged.type, lagged.number) == ("stream.lagged", None)
        assert lagged.data == {"position": 2, "behind": 100}
        assert [event.number for event in await take(stream, 100)] == list(range(3, 103))


async def test_a_reader_that_was_never_up_to_date_is_not_called_slow(log: Log) -> None:
    await append(log.database, log.session_id, *(note(n) for n in range(200)))
    async with log.stream(max_lag=50, is_following=False) as stream:
        assert {event.type async for event in stream} == {"session.held"}


async def test_a_position_that_is_trimmed_away_while_following_is_told(log: Log) -> None:
    """E4: the reader was cut off, the log was trimmed, and it comes back too late."""
    await append(log.database, log.session_id, *(note(n) for n in range(20)))
    async with log.stream() as stream:
        await take(stream, 20)
        log.outbox.is_silent = True
        await append(log.database, log.session_id, *(note(n) for n in range(20)))
        await log.database.transaction(lambda unit: events.trim(unit, log.session_id, before=31), name="trim")
        log.outbox.signals.recheck()
        expired = await anext(stream)
        assert (expired.type, expired.data["first"]) == ("stream.expired", 31)
        assert [event.number for event in await take(stream, 10)] == list(range(31, 41))


async def test_a_store_that_is_gone_for_a_moment_does_not_lose_the_place(log: Log) -> None:
    await append(log.database, log.session_id, note("one"), note("two"))
    async with log.stream() as stream:
        log.failing = 1
        with pytest.raises(StoreUnavailable):
            await anext(stream)
        assert [event.number for event in await take(stream, 2)] == [1, 2]


async def test_a_stream_reads_no_more_than_a_page_ahead(log: Log) -> None:
    """P8, E5: a reader that stops pulling holds one page, however long the log is."""
    await append(log.database, log.session_id, *(note(n) for n in range(3_000)))
    async with log.stream() as stream:
        await anext(stream)
        assert log.reads == 1
        await take(stream, 999)
        assert log.reads == 1
        await anext(stream)
        assert log.reads == 2


async def test_a_closed_stream_ends(log: Log) -> None:
    await append(log.database, log.session_id, note("one"), note("two"))

    def is_one(event: Event) -> bool:
        return event.data["reason"] == "one"

    stream = log.stream(until=is_one)
    assert [event.number async for event in stream] == [1]
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
