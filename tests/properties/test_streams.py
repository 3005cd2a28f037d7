"""Any log, any readers, any folding in between: what a reader has is the whole, by offsets, nothing twice."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from outlast.events.event import Draft, Event
from outlast.events.fold import cut, fold
from outlast.events.news import News
from outlast.events.signals import LocalSignals, log_topic
from outlast.events.stream import EventStream, Page
from outlast.events.types import EventType
from outlast.events.views.turn_fold import fold_turn
from outlast.ids import SessionId, TurnId
from outlast.store.database import Database
from outlast.store.repositories import events
from outlast.store.unit import Unit
from tests.support.moments.commits import let_run
from tests.support.stores.store import append, new_session, note, opened

TURN = TurnId("trn_1")
AT = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = st.text(alphabet="abc \N{WATER WAVE}é\n", min_size=1, max_size=6)


@dataclass
class Writer:
    """Makes parts as a model does: interleaved, each with its offsets."""

    lengths: dict[str, int] = field(default_factory=dict[str, int])
    truth: dict[str, str] = field(default_factory=dict[str, str])

    def grow(self, part: str, text: str) -> list[Draft]:
        drafts: list[Draft] = []
        if part not in self.lengths:
            drafts.append(Draft(EventType.PART_STARTED, {"part": part, "kind": "text"}, TURN))
            self.lengths[part] = 0
            self.truth[part] = ""
        data = {"part": part, "offset": self.lengths[part], "text": text}
        self.lengths[part] += len(text)
        self.truth[part] += text
        return [*drafts, Draft(EventType.PART_DELTA, data, TURN)]

    def end(self, part: str) -> list[Draft]:
        return [Draft(EventType.PART_ENDED, {"part": part, "length": self.lengths[part]}, TURN)]


@dataclass
class Seen:
    """What a reader has put together; complains about anything that does not fit."""

    position: int = 0
    parts: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, event: Event) -> None:
        assert event.number is not None
        assert event.number > self.position
        self.position = event.number
        if event.type == EventType.PART_DELTA:
            have = self.parts.get(event.data["part"], "")
            assert event.data["offset"] == len(have), "neither a gap nor a repeat"
            self.parts[event.data["part"]] = have + event.data["text"]


PARTS = st.sampled_from(["1.1.0", "1.1.1", "1.2.0"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), PARTS, TEXTS),
        st.tuples(st.just("grow"), PARTS, TEXTS),
        st.tuples(st.just("end"), PARTS, st.just("")),
        st.tuples(st.just("fold"), st.just(""), st.just("")),
        st.tuples(st.just("read"), st.sampled_from("012"), st.just("")),
        st.tuples(st.just("note"), st.just(""), st.just("")),
    ),
    max_size=40,
)


def stream(database: Database, session_id: SessionId, after: int) -> EventStream:
    async def read(session_id: SessionId, after: int, limit: int) -> Page | None:
        def page(connection: sa.Connection) -> Page | None:
            bounds = events.bounds(connection, session_id)
            return None if bounds is None else Page(events.page(connection, session_id, after, 7), *bounds)

        return await database.read(page)

    return EventStream(read, LocalSignals(), session_id, after=after, is_following=False)


async def read_some(database: Database, session_id: SessionId, seen: Seen, most: int | None) -> None:
    """A reader that connects where it left off, and may be cut off again after a few events."""
    taken = 0
    async with stream(database, session_id, seen.position) as replay:
        async for event in replay:
            seen.take(event)
            taken += 1
            if taken == most:
                break


async def play(database: Database, steps: list[tuple[str, str, str]]) -> None:
    session_id = await new_session(database)
    writer, readers = Writer(), [Seen(), Seen(), Seen()]
    over: set[str] = set()

    def fold_now(unit: Unit) -> object:
        return events.fold_parts(unit, session_id, TURN, after=0)

    for what, which, text in steps:
        if what == "grow" and which not in over:
            await append(database, session_id, *writer.grow(which, text))
        elif what == "end" and which in writer.lengths and which not in over:
            over.add(which)
            await append(database, session_id, *writer.end(which))
        elif what == "fold":
            await database.transaction(fold_now, name="fold")
        elif what == "read":
            await read_some(database, session_id, readers[int(which)], most=3)
        elif what == "note":
            await append(database, session_id, note("beside"))
    for seen in [*readers, Seen()]:
        await read_some(database, session_id, seen, most=None)
        assert {part: text for part, text in seen.parts.items() if text} == writer.truth


def test_every_reader_puts_the_same_text_together(sqlite_url: str) -> None:
    """P4, E1: random appends, folds and readers that come and go: the truth, by offsets."""
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        opening = opened(sqlite_url)
        database = runner.run(opening.__aenter__())
        run: Callable[[Any], Any] = runner.run

        @settings(deadline=None, max_examples=60, database=None)
        @given(steps=STEPS)
        def over(steps: list[tuple[str, str, str]]) -> None:
            run(play(database, steps))

        try:
            over()
        finally:
            runner.run(opening.__aexit__(None, None, None))


def numbered(drafts: list[Draft]) -> list[Event]:
    return [
        Event(SessionId("ses_1"), number, each.type.value, AT, each.data, each.turn_id)
        for number, each in enumerate(drafts, start=1)
    ]


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    writer = Writer()
    drafts: list[Draft] = []
    grown = draw(st.lists(st.tuples(PARTS, TEXTS), min_size=1, max_size=40))
    # The parts of one response may grow in turns; the next response begins after them.
    for part, text in sorted(grown, key=lambda each: each[0].rpartition(".")[0]):
        drafts += writer.grow(part, text)
        if draw(st.booleans()):
            drafts.append(Draft(EventType.SESSION_HELD, {"reason": "beside"}))
    return numbered(drafts)


def folded(log: list[Event]) -> list[Event]:
    """The log as the store keeps it after a fold."""
    by_number = {event.number: event for event in log}
    for group in fold(event for event in log if event.type == EventType.PART_DELTA):
        for number in group.replaces:
            by_number.pop(number)
        by_number[group.event.number] = group.event
    return sorted(by_number.values(), key=lambda event: event.number or 0)


def texts_after(log: list[Event], after: int) -> dict[str, str]:
    texts: dict[str, str] = {}
    for event in log:
        if event.type == EventType.PART_DELTA and (event.number or 0) > after:
            rest = cut(event, after)
            texts[event.data["part"]] = texts.get(event.data["part"], "") + rest.data["text"]
    return {part: text for part, text in texts.items() if text}


@settings(deadline=None, max_examples=100)
@given(logs())
def test_a_cut_of_a_fold_is_exactly_the_suffix(log: list[Event]) -> None:
    """P4: for every position, what a folded log still gives is what the unfolded one would have given."""
    kept = folded(log)
    assert all((before.number or 0) < (after.number or 0) for before, after in pairwise(kept))
    for after in range(len(log) + 1):
        assert texts_after(kept, after) == texts_after(log, after)
        assert texts_after(folded(kept), after) == texts_after(log, after)


@settings(deadline=None, max_examples=100)
@given(logs())
def test_the_outcome_of_a_folded_log_is_the_same(log: list[Event]) -> None:
    """D7: one fold of the log, whether its text was folded or not."""
    assert fold_turn(TURN, folded(log)).outcome == fold_turn(TURN, log).outcome


SIGNALS = st.lists(st.sampled_from(["brings", "brings", "brings", "hints", "lost", "late", "twice"]), max_size=30)


@settings(deadline=None, max_examples=200, database=None)
@given(signals=SIGNALS, sizes=st.lists(st.integers(1, 4), min_size=30, max_size=30), page=st.integers(1, 5))
def test_a_follower_has_every_event_once_whatever_becomes_of_the_signals(
    signals: list[str], sizes: list[int], page: int
) -> None:
    """P4: signals that bring events along may be lost, late or doubled, and others bring nothing."""
    asyncio.run(_follow(signals, sizes, page))


async def _follow(kinds: list[str], sizes: list[int], page: int) -> None:
    log: list[Event] = []
    session_id, signals = SessionId("ses_1"), LocalSignals()
    topic = log_topic(session_id)

    async def read(session_id: SessionId, after: int, limit: int) -> Page | None:
        found = [event for event in log if (event.number or 0) > after][:page]
        return Page(found, 1, len(log))

    seen: list[int | None] = []

    async def follow(stream: EventStream) -> None:
        async for event in stream:
            seen.append(event.number)

    late: list[News] = []
    async with EventStream(read, signals, session_id) as stream:
        following = asyncio.create_task(follow(stream))
        for kind, size in zip(kinds, sizes, strict=False):
            lines = [(len(log) + n, "note", 0, None, None, "{}") for n in range(1, size + 1)]
            news = News(session_id, len(log), lines)
            log += news.events
            if kind == "late":
                late.append(news)
            elif kind != "lost":
                for _ in range(2 if kind == "twice" else 1):
                    signals.publish([topic], [news] if kind != "hints" else [])
                for each in late:
                    signals.publish([topic], [each])
                late.clear()
            await let_run()
        signals.publish([topic])
        await let_run()
        following.cancel()
        await asyncio.wait({following})
    assert seen == list(range(1, len(log) + 1))
