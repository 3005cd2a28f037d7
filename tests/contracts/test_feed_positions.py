"""The feed of an owner from positions, its replay and its outputs, on both databases."""

import asyncio
from typing import Any

import pytest

from outlast.errors import InvalidInput, NotFound
from outlast.events.signals import output_topic
from outlast.handles.feed import PAGE, Fed, OwnerStream, burst_seconds
from outlast.handles.services.log_reader import LogPages
from outlast.ids import OwnerId
from outlast.store.database import Database
from outlast.store.repositories import events, outputs
from outlast.store.repositories import feed as feed_lines
from outlast.store.repositories.outputs import Chunk
from tests.contracts.test_feed import DELTA, Feed, places
from tests.support.stores.store import OWNER, append, new_session, note


@pytest.fixture
def feed(database: Database) -> Feed:
    return Feed(database)


async def test_a_log_is_told_from_the_position_that_is_asked_for(feed: Feed) -> None:
    """E6: a number, now, or the beginning; it counts more than what the cursor knows."""
    one, two, three = [await new_session(feed.database) for _ in range(3)]
    for each in (one, two, three):
        await append(feed.database, each, note("a"), DELTA, note("b"), DELTA)
    end = (await feed.read())[-1].cursor
    assert places(await feed.read(end, logs=[f"{one}:2", f"{two}:now", three])) == [
        *((one, number) for number in (3, 4)),
        *((three, number) for number in (1, 2, 3, 4)),
    ]
    known = (await feed.read(logs=[one]))[-1].cursor
    assert await feed.read(known, logs=[one]) == []
    assert places(await feed.read(known, logs=[f"{one}:3"])) == [(one, 4)]
    assert places(await feed.read("now", logs=[f"{one}:3"])) == [(one, 4)]
    ahead = await feed.read(None, logs=[f"{one}:4"])
    assert one not in {id for id, _ in places(ahead)}, "what the reader has already is not told again"
    for wrong in (f"{one}:x", f"{one}:-1", f"{one}:end"):
        with pytest.raises(InvalidInput, match="where to begin"):
            feed.stream(logs=[wrong])


async def test_from_any_position_nothing_is_lost_and_nothing_comes_twice(feed: Feed) -> None:
    """E6, P4: a page that holds a log up to an event, and the feed's cursor of that moment, goes on from there."""
    one, other = await new_session(feed.database), await new_session(feed.database)
    moments: list[tuple[str, int]] = []
    for at in range(12):
        await append(feed.database, one, *([note(at)] if at % 3 else [DELTA, DELTA]))
        await append(feed.database, other, note(at))
        async with feed.stream("now", logs=[one]) as stream:
            moments.append((stream.cursor.partition(".ses")[0], int(stream.cursor.rpartition(":")[2])))
    truth = await feed.database.read(lambda connection: events.page(connection, one, 0))
    for cursor, position in moments:
        rest = [each.event for each in await feed.read(cursor, logs=[f"{one}:{position}"])]
        assert [each for each in rest if each.session_id == one] == [
            each for each in truth if (each.number or 0) > position
        ]
        assert len([each for each in rest if each.session_id == other]) == 11 - moments.index((cursor, position))


async def test_a_long_replay_reads_each_event_about_once(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """E6, P6: not a page of the log for every line of the feed."""
    one = await new_session(feed.database)
    for _ in range(6):
        await append(feed.database, one, *[each for _ in range(PAGE // 10) for each in (note("x"), DELTA, DELTA)])
    rows, next_page = 0, events.next_page

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal rows
        found = next_page(*arguments, **named)
        rows += len(found.events) if found is not None else 0
        return found

    monkeypatch.setattr(events, "next_page", counted)
    told = await feed.read(logs=[one])
    assert [each.event.number for each in told] == list(range(1, 6 * 3 * (PAGE // 10) + 1))
    assert rows <= len(told) * 1.2


async def test_live_is_said_once_after_all_that_was_there(feed: Feed) -> None:
    """E6: also when there is nothing."""
    one = await new_session(feed.database)
    await append(feed.database, one, *[note("a")] * (PAGE + 3))
    for after, count in ((None, PAGE + 3), ("now", 0)):
        stream = OwnerStream(feed.database, feed.signals, OwnerId(OWNER), after=after, sessions=[one], says_live=True)
        async with asyncio.timeout(20), stream:
            types: list[str] = []
            while not stream.is_live:
                types += [each.event.type for each in await stream.batch()]
            assert types == ["session.held"] * count + ["stream.live"]
            await append(feed.database, one, DELTA)
            assert [each.event.type for each in await stream.batch()] == ["part.delta"]


async def test_a_reader_that_falls_far_behind_is_told(feed: Feed) -> None:
    """E6: it goes on from the store and misses nothing; what is kept for it meanwhile is bounded."""
    one = await new_session(feed.database)
    for logs in ([one], []):
        stream = OwnerStream(feed.database, feed.signals, OwnerId(OWNER), after="now", sessions=logs, max_lag=PAGE)
        async with asyncio.timeout(30), stream:
            first = asyncio.create_task(anext(stream))
            while not stream.is_live:  # noqa: ASYNC110 - it tells nobody else
                await asyncio.sleep(0.01)
            await append(feed.database, one, note("woken"))
            await first
            for _ in range(3):
                await append(feed.database, one, *[note("much")] * PAGE)
            seen: list[Fed] = []
            while len([each for each in seen if not each.event.is_control]) < 3 * PAGE:
                seen += await stream.batch()
            said = [each.event for each in seen if each.event.is_control]
            assert [each.type for each in said] == ["stream.lagged"]
            assert said[0].data["behind"] > PAGE


async def test_output_of_a_stranger_is_not_there(feed: Feed) -> None:
    """P7, B4: as of a task that does not exist."""
    async with OwnerStream(feed.database, feed.signals, OwnerId(OWNER)):
        stream = OwnerStream(feed.database, feed.signals, OwnerId(OWNER), outputs=["tsk_unknown:end"])
        with pytest.raises(NotFound, match="There is no such task"):
            await stream.__aenter__()
    with pytest.raises(InvalidInput, match="follows"):
        OwnerStream(feed.database, feed.signals, OwnerId(OWNER), outputs=["tsk_unknown"], follow=False)


async def test_what_is_written_to_an_output_is_signalled(feed: Feed) -> None:
    """B4: whoever follows it need not ask again and again."""
    one = await new_session(feed.database)
    subscription = feed.signals.subscribe(output_topic(one, "call"), with_news=True)
    await feed.database.transaction(lambda unit: outputs.append(unit, one, "call", [Chunk(0, "a")]), name="output")
    await subscription.wait(5)
    assert list(subscription.hear().others) == [output_topic(one, "call")]


async def test_a_burst_of_commits_is_told_at_once(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """E6, P6: its first commit is told without waiting; what follows soon wakes a reader once, and nothing is lost."""
    monkeypatch.setattr("outlast.handles.feed.BURST_SECONDS", 2.0)
    one = await new_session(feed.database)
    async with (
        asyncio.timeout(60),
        OwnerStream(feed.database, feed.signals, OwnerId(OWNER), after="now", sessions=[one], says_live=True) as stream,
    ):
        while not stream.is_live:
            await stream.batch()
        batches: list[list[int | None]] = []

        async def read() -> None:
            while sum(map(len, batches)) < 12:
                batches.append([each.event.number for each in await stream.batch()])

        reading = asyncio.create_task(read())
        for number in range(12):
            await append(feed.database, one, DELTA if number % 2 else note(number))
        await reading
    assert [number for batch in batches for number in batch] == [*range(1, 13)]
    assert len(batches) <= 4, batches


async def test_readers_of_one_feed_share_its_looks(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """E5, E6, P8: what each misses nothing of and has nothing of twice is looked for once for all that wait for it."""
    monkeypatch.setattr("outlast.handles.feed.BURST_SECONDS", 0.2)
    one, pages, looks = await new_session(feed.database), LogPages(feed.database), 0
    page = feed_lines.page

    def counted(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        return page(*args)

    monkeypatch.setattr(feed_lines, "page", counted)

    async def read(is_live: asyncio.Event) -> list[int | None]:
        told: list[int | None] = []
        stream = OwnerStream(
            feed.database, feed.signals, OwnerId(OWNER), after="now", sessions=[one], pages=pages, says_live=True
        )
        async with stream:
            while len(told) < 20:
                told += [each.event.number for each in await stream.batch() if not each.event.is_control]
                is_live.set()
        return told

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        live = [asyncio.Event() for _ in range(30)]
        readings = [group.create_task(read(each)) for each in live]
        for each in live:
            await each.wait()
        looks = 0
        for number in range(20):
            await append(feed.database, one, DELTA if number % 2 else note(number))
            await asyncio.sleep(0.01)
    assert [each.result() for each in readings] == [[*range(1, 21)]] * 30
    assert looks <= 15


def test_a_feed_of_many_readers_waits_longer_for_more_but_never_long() -> None:
    """E6, P8: one reader is told nearly at once, and a thousand are not told so often that the turn stands still."""
    assert burst_seconds(1) < 0.025
    assert burst_seconds(10) < burst_seconds(100) < burst_seconds(1_000) <= burst_seconds(10**6) < 0.25
