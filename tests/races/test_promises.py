"""Promises that need a place where something goes wrong: a superseded attempt, a second process, a slow reader."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from outlast.errors import DatabaseInUse
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.ids import TurnId
from outlast.runs.turns import attempt
from outlast.store.database import Moment
from outlast.store.repositories import events, turns
from outlast.testing import gate, text
from tests.support.moments.checkpoint import Checkpoint
from tests.support.stores.store import append, new_session, note, opened, stored_events
from tests.support.turns.runtime import Runtime, event_types, events_of, wait_for_event

TURN = TurnId("trn_one")
LONG = "The river rose by a hand overnight. " * 20


async def test_a_superseded_attempt_writes_nothing_more(tmp_path: Path) -> None:
    """P5: once another attempt holds the turn, neither text nor an end of this one reaches the log."""
    answering = Checkpoint()
    async with Runtime(tmp_path / "app.db")([[gate(answering), text(LONG, chunk=40, pause=0.003)]]) as outlast:
        session = await outlast.sessions.create()
        turn = await (await session.send("How high is the river?")).turn()
        await answering.reached()
        await outlast.database.transaction(lambda unit: turns.set_values(unit, turn.id, attempt=2), name="supersede")
        before = await event_types(session)
        answering.open()
    with closing(sqlite3.connect(tmp_path / "app.db")) as connection:
        after = [type_ for (type_,) in connection.execute("SELECT type FROM events ORDER BY number")]
    assert after == before

    async with Runtime(tmp_path / "app.db")(["The second attempt."]) as outlast:
        session = await outlast.sessions.get(session.id)
        outcome = await session.turn(turn.id).outcome()
        told = await events_of(session, "part.delta")

    assert (outcome.state, outcome.text) == ("completed", "The second attempt.")
    assert "".join(event.data["text"] for event in told) == "The second attempt."


async def test_a_second_process_on_the_same_file_is_refused(tmp_path: Path) -> None:
    """P5: one file, one runner; the refusal says who runs it."""
    runtime = Runtime(tmp_path / "app.db")
    async with runtime():
        with pytest.raises(DatabaseInUse) as caught:
            async with runtime():
                pass
        assert caught.value.details["pid"]


async def test_a_reader_in_the_middle_of_a_folded_text_gets_just_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4: whatever was read before the fold, together with what is read after it, is the text, once."""
    monkeypatch.setattr(attempt, "_WORTH_FOLDING", 1)  # a store that is slow gets few deltas
    loop, is_folded = asyncio.get_running_loop(), asyncio.Event()

    def watch(name: str, moment: Moment) -> None:
        if (name, moment) == ("fold", "after"):
            loop.call_soon_threadsafe(is_folded.set)

    # The pause is longer than text ever waits to be written: there are several deltas on the slowest machine.
    async with Runtime(tmp_path / "app.db")([[text(LONG, chunk=200, pause=0.4)]]) as outlast:
        outlast.database.watcher = watch
        session = await outlast.sessions.create()
        await session.send("How high is the river?")
        read = ""
        async with session.events() as stream:
            async for event in stream:
                read += event.data["text"] if event.type == "part.delta" else ""
                if len(read) > 100:
                    break
        await is_folded.wait()
        async with session.events(after=stream.position, follow=False) as rest:
            read += "".join([event.data["text"] async for event in rest if event.type == "part.delta"])

    assert read == LONG


async def test_a_reader_that_stopped_between_two_deltas_of_a_folded_text_misses_nothing(sqlite_url: str) -> None:
    """P4: something else happened while the model spoke; readers that saw just that still get the text before it."""

    def delta(offset: int, words: str) -> Draft:
        return Draft(EventType.PART_DELTA, {"part": "1.1.0", "offset": offset, "text": words}, TURN)

    ended = Draft(EventType.PART_ENDED, {"part": "1.1.0", "length": 17}, TURN)
    async with opened(sqlite_url) as database:
        session_id = await new_session(database)
        await append(database, session_id, delta(0, "The "), delta(4, "river "), note("stop"), delta(10, "is "))
        last = await append(database, session_id, delta(13, "high"), ended)
        await database.transaction(lambda unit: events.fold_parts(unit, session_id, TURN, after=0), name="fold")
        for position in range(last):
            seen = [event for event in await stored_events(database, session_id) if (event.number or 0) <= position]
            rest = await stored_events(database, session_id, after=seen[-1].number or 0 if seen else 0)
            told = [event.data["text"] for event in [*seen, *rest] if event.type == EventType.PART_DELTA]
            assert "".join(told) == "The river is high", f"a reader that stopped at {position}"


async def test_a_reader_that_falls_behind_is_told_and_holds_up_nobody(tmp_path: Path) -> None:
    """P8, E4: the turn ends while its reader does nothing; the reader is told how far it is behind, then gets all."""
    async with Runtime(tmp_path / "app.db")([[text(LONG, chunk=20, pause=0.003)]], max_reader_lag=5) as outlast:
        session = await outlast.sessions.create()
        async with session.events() as slow:
            first = await anext(slow)
            sent = await session.send("How high is the river?")
            outcome = await sent.outcome()
            await wait_for_event(session, "turn.completed")
            told = [await anext(slow)]
            while told[-1].type != "turn.completed":
                told.append(await anext(slow))
        whole = await event_types(session)

    assert outcome.text == LONG
    assert told[0].type == "stream.lagged"
    assert told[0].data["position"] == first.number
    assert whole[0] == "session.created"
    assert whole[-1] == told[-1].type
