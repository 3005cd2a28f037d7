"""The feed of an owner on both databases: complete, in order, nothing twice, and nothing of anybody else."""

import asyncio
import gc
import random
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from weakref import WeakSet

import pytest

from outlast.errors import InvalidInput, NotFound
from outlast.events.event import Draft, Event
from outlast.events.signals import LocalSignals, Subscription, log_topic
from outlast.events.types import FED, EventType
from outlast.handles.feed import MOST_LOGS, PAGE, Fed, OwnerStream
from outlast.ids import OwnerId, SessionId, TurnId
from outlast.store.database import Database
from outlast.store.outbox import Committed, SilentOutbox
from outlast.store.repositories import deleted, events
from outlast.store.unit import Unit
from outlast.transitions import deletion
from tests.support.stores.store import OWNER, append, new_session, note

TURN = TurnId("trn_1")
DELTA = Draft(EventType.PART_DELTA, {"part": "1.1.0", "offset": 0, "text": "a"}, TURN)


class Remembered(LocalSignals):
    """Knows which subscriptions are still held by anyone."""

    def __init__(self) -> None:
        super().__init__()
        self.held: WeakSet[Subscription] = WeakSet()

    def subscribe(self, *topics: str, with_news: bool = False) -> Subscription:
        made = super().subscribe(*topics, with_news=with_news)
        self.held.add(made)
        return made


class Feed(SilentOutbox):
    """The feed of this test's owner, with signals as the runtime sends them."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.signals = Remembered()
        database.attach(self)

    def deliver(self, committed: Committed) -> None:
        topics = {log_topic(event.session_id) for event in committed.events}
        self.signals.publish([*topics, *committed.signals], committed.news)

    def stream(
        self, after: str | None = None, *, logs: Sequence[str] = (), follow: bool = False, owner_id: str = OWNER
    ) -> OwnerStream:
        return OwnerStream(self.database, self.signals, OwnerId(owner_id), after=after, sessions=logs, follow=follow)

    async def read(self, after: str | None = None, *, logs: Sequence[str] = (), owner_id: str = OWNER) -> list[Fed]:
        async with self.stream(after, logs=logs, owner_id=owner_id) as stream:
            return [each async for each in stream]


@pytest.fixture
def feed(database: Database) -> Feed:
    return Feed(database)


def places(fed: Sequence[Fed]) -> list[tuple[str, int | None]]:
    return [(each.event.session_id, each.event.number) for each in fed]


async def test_changes_of_state_come_in_the_order_of_their_commits(feed: Feed) -> None:
    """E6: of all sessions; without words and calls."""
    one, two = await new_session(feed.database), await new_session(feed.database)
    await append(feed.database, one, note("a"), DELTA, Draft(EventType.TURN_STARTED, {"attempt": 1}, TURN))
    await append(feed.database, two, note("b"))
    await append(feed.database, one, DELTA, Draft(EventType.CALL_STARTED, {"call_id": "c"}, TURN), note("c"))
    fed = await feed.read()
    assert places(fed) == [(one, 1), (one, 3), (two, 1), (one, 6)]
    stored = await feed.database.read(lambda connection: events.page(connection, one, 0))
    assert fed[1].event == stored[2], "the whole event, as its log has it"


async def test_a_cursor_resumes_just_after_its_event(feed: Feed) -> None:
    """E6: from each of them, over more than one page."""
    one, two = await new_session(feed.database), await new_session(feed.database)
    for n in range(4):
        await append(feed.database, (one, two)[n % 2], *(note(n) for _ in range(PAGE // 3)))
    whole = await feed.read()
    assert len(whole) == 4 * (PAGE // 3)
    for position in (0, 1, PAGE // 3 - 1, PAGE - 1, PAGE, len(whole) - 1):
        assert await feed.read(whole[position].cursor) == whole[position + 1 :]


async def test_the_events_of_others_never_appear(feed: Feed) -> None:
    """P7, E6: also not with a cursor that another owner was given."""
    mine = await new_session(feed.database)
    other = await new_session(feed.database, owner_id="oskar")
    await append(feed.database, other, note("secret"))
    await append(feed.database, mine, note("mine"))
    await append(feed.database, other, note("secret"), DELTA)
    assert places(await feed.read()) == [(mine, 1)]
    theirs = await feed.read(owner_id="oskar")
    assert places(theirs) == [(other, 1), (other, 2)]
    assert places(await feed.read(theirs[0].cursor)) == [(mine, 1)]
    assert places(await feed.read(f"{theirs[0].cursor}.{other}:0")) == [(mine, 1)]


async def test_the_log_of_another_owner_cannot_be_asked_for(feed: Feed) -> None:
    """P7: it is not found, as one that does not exist."""
    other = await new_session(feed.database, owner_id="oskar")
    for asked in (other, "ses_unknown"):
        stream = feed.stream(logs=[asked])
        with pytest.raises(NotFound, match="There is no such session"):
            await stream.__aenter__()
        with pytest.raises(NotFound, match="There is no such session"):
            await anext(stream)


@pytest.mark.parametrize(
    "cursor", ["", "1", "1.", "1.x", "2.1", "1.-1", "1.1\n", f"1.{'9' * 19}", "1.1.ses_x:1", "Now"]
)
async def test_a_cursor_that_is_none_is_refused(feed: Feed, cursor: str) -> None:
    """E6."""
    with pytest.raises(InvalidInput, match="not a cursor"):
        feed.stream(cursor)


async def test_too_many_logs_are_refused(feed: Feed) -> None:
    with pytest.raises(InvalidInput, match=str(MOST_LOGS)):
        feed.stream(logs=["ses_1"] * (MOST_LOGS + 1))


async def test_logs_that_are_asked_for_are_told_whole_and_in_place(feed: Feed) -> None:
    """E6: deltas only of sessions asked for, between the changes of the others."""
    one, two = await new_session(feed.database), await new_session(feed.database)
    await append(feed.database, one, note("a"), DELTA, DELTA)
    await append(feed.database, two, note("b"), DELTA)
    await append(feed.database, one, note("c"), DELTA)
    fed = await feed.read(logs=[one])
    assert places(fed) == [(one, 1), (two, 1), (one, 2), (one, 3), (one, 4), (one, 5)]
    for position in range(len(fed)):
        assert await feed.read(fed[position].cursor, logs=[one]) == fed[position + 1 :]
        rest = await feed.read(fed[position].cursor)
        assert places(rest) == [place for place in places(fed[position + 1 :]) if place in [(two, 1), (one, 4)]], (
            "whoever no longer asks for the log goes on with its changes of state"
        )


async def test_a_log_asked_for_later_is_told_from_its_beginning(feed: Feed) -> None:
    """E6: that is what was asked for."""
    one = await new_session(feed.database)
    await append(feed.database, one, note("a"), DELTA, note("b"))
    cursor = (await feed.read())[-1].cursor
    assert places(await feed.read(cursor, logs=[one])) == [(one, 1), (one, 2), (one, 3)]


async def test_a_long_log_is_told_page_by_page(feed: Feed) -> None:
    """E6: no read grows with the length of what is read."""
    one, two = await new_session(feed.database), await new_session(feed.database)
    await append(feed.database, one, *[DELTA] * (2 * PAGE), note("end"), *[DELTA] * (PAGE + 7))
    await append(feed.database, two, note("last"))
    whole = places(await feed.read(logs=[one]))
    expected = [(one, n) for n in range(1, 2 * PAGE + 2)]
    assert whole == [*expected, (two, 1), *((one, n) for n in range(2 * PAGE + 2, 3 * PAGE + 9))]


async def test_a_stream_from_now_on_tells_only_what_comes(feed: Feed) -> None:
    """E6: whoever has listed the sessions needs no past."""
    one, two = await new_session(feed.database), await new_session(feed.database)
    await append(feed.database, one, note("before"), DELTA)
    async with feed.stream("now", logs=[one], follow=True) as stream:
        await append(feed.database, two, note("after"))
        await append(feed.database, one, DELTA, note("after"))
        assert places([await anext(stream) for _ in range(3)]) == [(two, 1), (one, 3), (one, 4)]


async def test_what_is_rolled_back_is_not_in_the_feed(feed: Feed) -> None:
    """P4: a line and its event are one commit."""
    one = await new_session(feed.database)

    def fail(unit: Unit) -> None:
        unit.append(one, [note("never")])
        unit.flush()
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        await feed.database.transaction(fail, name="fail")
    await append(feed.database, one, note("kept"))
    assert [each.event.data for each in await feed.read()] == [{"reason": "kept"}]


@pytest.mark.parametrize("is_asked_for", [True, False])
async def test_a_deleted_session_is_told_of_also_when_its_log_is_gone(feed: Feed, is_asked_for: bool) -> None:
    """E6: who looks later hears that it was deleted, and nothing else of it."""
    one, two = await new_session(feed.database), await new_session(feed.database)
    await append(feed.database, one, note("gone"))
    await append(feed.database, two, note("kept"))
    logs = [one] if is_asked_for else []
    async with feed.stream(logs=logs, follow=True) as at_once, feed.stream(logs=logs, follow=True) as later:
        for stream in (at_once, later):
            assert places([await anext(stream), await anext(stream)]) == [(one, 1), (two, 1)]
        await feed.database.transaction(lambda unit: deletion.mark(unit, one, owner_id=OWNER), name="delete")
        told = (await anext(at_once)).event
        while not await feed.database.transaction(lambda unit: deleted.remove_some(unit, one), name="rows"):
            pass
        await feed.database.transaction(lambda unit: deleted.remove_last(unit, one), name="session")
        assert (await anext(later)).event == told
        assert (told.session_id, told.type, told.data) == (one, "session.deleted", {})
        await append(feed.database, two, note("goes on"))
        for stream in (at_once, later):
            assert places([await anext(stream)]) == [(two, 2)]
    assert [(each.event.session_id, each.event.type) for each in await feed.read()] == [
        (two, "session.held"),
        (one, "session.deleted"),
        (two, "session.held"),
    ]


async def test_what_a_log_no_longer_has_is_told_as_expired(feed: Feed) -> None:
    """E6: as a session's own stream does."""
    one = await new_session(feed.database)
    await append(feed.database, one, note("a"), DELTA, note("b"), DELTA)
    await feed.database.transaction(lambda unit: events.trim(unit, one, before=3), name="trim")
    fed = await feed.read(logs=[one])
    assert [(each.event.type, each.event.number) for each in fed] == [
        ("stream.expired", None),
        ("session.held", 3),
        ("part.delta", 4),
    ]
    assert fed[0].event.data["first"] == 3
    assert places(await feed.read()) == [(one, 3)]


async def test_readers_under_concurrent_appends_cuts_and_resumes_miss_nothing(feed: Feed) -> None:
    """E6, P4: several writers to each session, readers that come and go, logs that are dropped on the way."""
    ids = [await new_session(feed.database) for _ in range(4)]
    other = await new_session(feed.database, owner_id="oskar")

    async def write(seed: int) -> None:
        draw = random.Random(seed)
        for n in range(30):
            drafts = [draw.choice([note(f"{seed}.{n}"), DELTA, DELTA]) for _ in range(draw.randint(1, 4))]
            await append(feed.database, draw.choice([*ids, other]), *drafts)

    readers = [asyncio.create_task(read_in_pieces(feed, ids, count)) for count in range(5)]
    try:
        await asyncio.gather(*(write(seed) for seed in range(6)))
    finally:
        for session_id in [*ids, other]:
            await append(feed.database, session_id, END)
        found = await asyncio.gather(*readers)
    truth = {each: await feed.database.read(partial(events.page, session_id=each, after=0)) for each in ids}
    for seen, whole in found:
        assert seen.keys() == truth.keys()
        for session_id in ids:
            changes = [event for event in seen[session_id] if event.type in FED]
            assert changes == [event for event in truth[session_id] if event.type in FED], "once, in order"
        for session_id in whole:
            assert seen[session_id] == truth[session_id]


END = note("the end")


async def read_in_pieces(
    feed: Feed, ids: list[SessionId], count: int
) -> tuple[dict[SessionId, list[Event]], set[SessionId]]:
    """To the end of all, cut again and again; some of the logs are dropped. Gives what came, and the logs kept."""
    cut = random.Random(count)
    logs = cut.sample(ids, count)
    seen: dict[SessionId, list[Event]] = defaultdict(list)
    ended: set[SessionId] = set()
    cursor: str | None = None
    while ended < set(ids):
        async with feed.stream(cursor, logs=logs, follow=True) as stream:
            for _ in range(cut.randint(1, 30)):
                cursor, event = await anext(stream)
                seen[event.session_id].append(event)
                if event.data == END.data:
                    ended.add(event.session_id)
                if ended >= set(ids):
                    break
        if logs and cut.random() < 0.05:
            logs.pop()
    return seen, set(logs)


async def test_a_reader_that_ends_leaves_nothing_behind(feed: Feed) -> None:
    """E6: also when it was cancelled while it waited."""
    one = await new_session(feed.database)
    async with feed.stream(logs=[one], follow=True) as stream:
        await append(feed.database, one, note("a"))
        await anext(stream)
        waiting = asyncio.create_task(anext(stream))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        del waiting
        assert len(feed.signals.held) == 1
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    gc.collect()
    assert len(feed.signals.held) == 0
