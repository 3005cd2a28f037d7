"""Any commits to any sessions, read in any pieces: a reader that is cut off gets the rest, and nothing twice."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlast import ids
from outlast.events.event import Draft, Event
from outlast.events.signals import LocalSignals
from outlast.events.types import FED, EventType
from outlast.handles import feed
from outlast.handles.feed import Fed
from outlast.ids import OwnerId, SessionId, TurnId
from outlast.store.database import Database
from outlast.store.repositories import events, sessions
from outlast.store.unit import Unit
from tests.support.stores.store import append, note, opened

WORDS = Draft(EventType.PART_DELTA, {"part": "1.1.0", "offset": 0, "text": "a"}, TurnId("trn_1"))
SESSIONS = 3

COMMIT = st.tuples(st.integers(0, SESSIONS - 1), st.lists(st.booleans(), min_size=1, max_size=4))
"""A session, and what is appended to it: changes of state, or words."""
STEPS = st.lists(st.tuples(COMMIT, st.booleans()), min_size=1, max_size=10)
"""Commits, and whether the reader reads all there is after each."""


async def read(database: Database, owner_id: OwnerId, after: str | None, logs: Sequence[SessionId]) -> list[Fed]:
    async with feed.OwnerStream(database, LocalSignals(), owner_id, after=after, sessions=logs, follow=False) as stream:
        return [each async for each in stream]


async def play(database: Database, steps: list[tuple[tuple[int, list[bool]], bool]], asked: int) -> None:
    # An owner for each example: the database is the same.
    owner_id, made = OwnerId(ids.reference_id()), [ids.session_id() for _ in range(SESSIONS)]

    def create(unit: Unit) -> None:
        for each in made:
            sessions.insert(unit, each, owner_id=owner_id, agent="agent", model=None, title=None, metadata={})

    await database.transaction(create, name="create")
    logs = made[:asked]
    told: list[Fed] = []
    for (which, changes), is_read in [*steps, ((0, [True]), True)]:
        await append(database, made[which], *(note("change") if is_change else WORDS for is_change in changes))
        if is_read:
            told += await read(database, owner_id, told[-1].cursor if told else None, logs)
    truth = [await database.read(lambda connection, id=each: events.page(connection, id, 0)) for each in made]
    check(told, truth, whole=logs)
    for position, each in enumerate(told, start=1):
        for kept in (logs, logs[:-1]):
            rest = await read(database, owner_id, each.cursor, kept)
            check([*told[:position], *rest], truth, whole=kept)


def check(told: Sequence[Fed], truth: Sequence[Sequence[Event]], *, whole: Sequence[SessionId]) -> None:
    for log in truth:
        for session_id in {event.session_id for event in log}:
            mine = [each.event for each in told if each.event.session_id == session_id]
            assert [each for each in mine if each.type in FED] == [each for each in log if each.type in FED]
            assert session_id not in whole or mine == log


@pytest.mark.parametrize("page", [1, 3])
def test_a_reader_of_the_feed_may_be_cut_anywhere(sqlite_url: str, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    """E6, P4: after every single event, also by a reader that no longer asks for one of the logs."""
    monkeypatch.setattr(feed, "PAGE", page)
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        opening = opened(sqlite_url)
        database = runner.run(opening.__aenter__())
        run: Callable[[Any], Any] = runner.run

        @settings(deadline=None, max_examples=25, database=None)
        @given(steps=STEPS, asked=st.integers(0, SESSIONS))
        def over(steps: list[tuple[tuple[int, list[bool]], bool]], asked: int) -> None:
            run(play(database, steps, asked))

        try:
            over()
        finally:
            runner.run(opening.__aexit__(None, None, None))
