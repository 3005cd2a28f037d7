"""The log: every type comes back as it was written, folded and trimmed parts included."""

from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa

from outlast.errors import NotFound
from outlast.events.data.by_type import DATA
from outlast.events.event import Draft, Event
from outlast.events.signals import LocalSignals
from outlast.events.stream import EventStream, Page
from outlast.events.types import CONTROL, TERMINAL, EventType
from outlast.events.views.turn_fold import fold_turn
from outlast.ids import SessionId, TaskId, TurnId
from outlast.store.database import Database
from outlast.store.repositories import events
from outlast.store.tables import events as rows
from outlast.store.unit import Unit
from tests.support.stores.store import append, new_session, note, stored_events

STORED = sorted((each for each in EventType if each not in CONTROL), key=lambda each: each == "session.deleted")
"""With the one after which there is nothing at the end."""
TURN = TurnId("trn_1")


def stream(database: Database, session_id: SessionId, **options: Any) -> EventStream:
    async def read(session_id: SessionId, after: int, limit: int) -> Page | None:
        def page(connection: sa.Connection) -> Page | None:
            bounds = events.bounds(connection, session_id)
            if bounds is None:
                return None
            return Page(events.page(connection, session_id, max(after, bounds[0] - 1), limit), *bounds)

        return await database.read(page)

    return EventStream(read, LocalSignals(), session_id, is_following=False, **options)


async def test_every_type_comes_back_as_it_was_written(database: Database) -> None:
    """E2: store, then replay: type, data, turn, task and time, for every type there is."""
    session_id = await new_session(database)
    data: dict[str, Any] = {
        "text": 'ü "\N{WATER WAVE}" \n \x01',
        "number": 2**53,
        "none": None,
        "list": [1.5, True, {}],
        "nul": "\x00",
        **{"input_id": "inp_1", "kind": "text", "call_id": "c", "tool": "t", "outcome": "success", "reason": "r"},
        **{"attempt": 1, "offset": 0, "usage": {}, "dropped": [], "progress": {}},
        "task": {"id": "tsk_1", "title": "t", "state": "running"},
        **{"request": {"id": "req_1", "kind": "question", "prompt": "Why?"}, "title": "t"},
        **{"request_id": "req_1", "how": "answered", "verdict": "worked", "by": "ada"},
        **{
            "schedule_id": "sch_1",
            "number": 2**53,
            "due_at": "2026-01-01T00:00:00Z",
            "late_seconds": 0.5,
            "detail": None,
        },
        **{"count": 1, "input_id": "inp_1", "task_id": None, "next_at": None},
        "schedule": {
            **dict.fromkeys(("title", "tool", "text", "cron", "at", "reason", "next_at", "task_id")),
            **{"id": "sch_1", "kind": "message", "zone": "UTC", "state": "active"},
            **{"missed": "run_once", "overlap": "skip", "made_by": {}},
        },
    }
    part: dict[EventType, Any] = {each: {} if each is EventType.CALL_ENDED else "1.1.0" for each in STORED}
    message = {each: "m" if each is EventType.TURN_FAILED else 3 for each in STORED}
    drafts = [
        Draft(each, {**data, "part": part[each], "message": message[each]}, TURN, TaskId("tsk_1")) for each in STORED
    ]
    await append(database, session_id, *drafts)
    async with stream(database, session_id) as replay:
        seen = [event async for event in replay]
    assert [event.type for event in seen] == [each.value for each in STORED]
    assert [event.number for event in seen] == list(range(1, len(STORED) + 1))
    assert [event.is_terminal for event in seen] == [each in TERMINAL for each in STORED]
    for event, draft in zip(seen, drafts, strict=True):
        assert (event.session_id, event.turn_id, event.task_id, event.data) == (session_id, TURN, "tsk_1", draft.data)
        assert abs((datetime.now(UTC) - event.at).total_seconds()) < 60


def test_every_type_says_what_it_holds() -> None:
    """E2: the reference of events is made from this list, so nothing may be missing from it."""
    assert set(DATA) == set(EventType)


async def test_unknown_types_are_passed_on_and_the_cursor_moves(database: Database) -> None:
    """E2: a reader older than the writer goes on."""
    session_id = await new_session(database)

    def from_the_future(unit: Unit) -> None:
        unit.append(session_id, [note("one"), note("two"), note("three")])

    def rename(unit: Unit) -> None:
        unit.connection.execute(sa.update(rows).where(rows.c.number == 2).values(type="moon.risen"))

    await database.transaction(from_the_future, name="append")
    await database.transaction(rename, name="rename")
    async with stream(database, session_id) as replay:
        seen = [(each.number, each.type) async for each in replay]
        assert replay.position == 3
    assert seen == [(1, "session.held"), (2, "moon.risen"), (3, "session.held")]
    assert fold_turn(TURN, await stored_events(database, session_id)).outcome.state == "queued"


async def test_a_page_is_never_more_than_a_thousand_rows(database: Database) -> None:
    """DESIGN 4: one page per read transaction, whatever is asked for; E5: the stream goes on page by page."""
    session_id = await new_session(database)
    await append(database, session_id, *(note(n) for n in range(2_500)))
    page = await database.read(lambda connection: events.page(connection, session_id, 0, 10_000))
    assert len(page) == events.PAGE == 1_000
    async with stream(database, session_id) as replay:
        assert [each.number async for each in replay] == list(range(1, 2_501))


async def test_an_unknown_session_has_no_stream(database: Database) -> None:
    with pytest.raises(NotFound):
        async for _ in stream(database, SessionId("ses_never")):
            pass


def part(name: str, *texts: str, is_ended: bool = True) -> list[Draft]:
    """A part as a model streams it."""
    drafts = [Draft(EventType.PART_STARTED, {"part": name, "kind": "text"}, TURN)]
    offset = 0
    for text in texts:
        drafts.append(Draft(EventType.PART_DELTA, {"part": name, "offset": offset, "text": text}, TURN))
        offset += len(text)
    if is_ended:
        drafts.append(Draft(EventType.PART_ENDED, {"part": name, "length": offset}, TURN))
    return drafts


def texts_of(found: list[Event]) -> str:
    return "".join(each.data["text"] for each in found if each.type == "part.delta")


async def test_folding_saves_rows_and_changes_nothing_for_readers(database: Database) -> None:
    """P4: whoever reads from anywhere has, with what it had before, exactly the text."""
    session_id = await new_session(database)
    words = [f"word {n} " for n in range(600)]
    await append(database, session_id, *part("1.1.0", *words), *part("1.1.1", "open", " part", is_ended=False))
    before = await stored_events(database, session_id)
    await database.transaction(lambda unit: events.fold_parts(unit, session_id, TURN, after=0), name="fold")
    after = await stored_events(database, session_id)
    assert len(before) - len(after) == 598
    assert fold_turn(TURN, after).outcome == fold_turn(TURN, before).outcome
    for position in (0, 1, 2, 7, 300, 511, 512, 513, 514, 600, 601, 602, 603, 604):
        rest = await stored_events(database, session_id, after=position)
        assert texts_of(before[:position]) + texts_of(rest) == texts_of(before)
    await database.transaction(lambda unit: events.fold_parts(unit, session_id, TURN, after=0), name="fold")
    assert await stored_events(database, session_id) == after


async def test_a_long_turn_is_folded_in_steps(database: Database) -> None:
    """P8: folding a very long turn holds the one writer only for a page at a time."""
    session_id = await new_session(database)
    await append(database, session_id, *part("1.1.0", *("x" for _ in range(3_000))))
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        position = after
        after = await database.transaction(
            lambda unit, position=position: events.fold_parts(unit, session_id, TURN, after=position), name="fold"
        )
        seen.append(position)
    assert len(seen) >= 3
    stored = await stored_events(database, session_id)
    assert texts_of(stored) == "x" * 3_000
    assert len(stored) < 20


async def test_a_dropped_response_is_left_out_of_every_replay(database: Database) -> None:
    """DESIGN 5.7: what was lost in a crash is not shown again; its parts are named for those who saw them."""
    session_id = await new_session(database)
    kept = await append(database, session_id, *part("1.1.0", "Kept."))
    await append(database, session_id, note("beside"), *part("1.2.0", "Lost", " text", is_ended=False))

    def drop(unit: Unit) -> list[str]:
        unit.lock(session_id)
        return events.drop_parts(unit, session_id, TURN, after=kept)

    assert await database.transaction(drop, name="drop") == ["1.2.0"]
    await append(database, session_id, note("after"))
    stored = await stored_events(database, session_id)
    assert texts_of(stored) == "Kept."
    assert [each.number for each in stored] == [1, 2, 3, 4, 8]
    async with stream(database, session_id, after=5) as replay:
        assert [each.number async for each in replay] == [8]


async def test_trimming_forgets_the_beginning(database: Database) -> None:
    """E4: an expired position is answered with the first number that is kept and a snapshot, then goes on."""
    session_id = await new_session(database)
    await append(database, session_id, *(note(n) for n in range(10)))
    await database.transaction(lambda unit: events.trim(unit, session_id, before=6), name="trim")

    async def snapshot() -> dict[str, Any]:
        return {"title": "River"}

    async with stream(database, session_id, after=2, snapshot=snapshot) as replay:
        seen = [each async for each in replay]
    assert seen[0].type == "stream.expired"
    assert seen[0].number is None
    assert seen[0].data == {"first": 6, "snapshot": {"title": "River"}}
    assert [each.number for each in seen[1:]] == [6, 7, 8, 9, 10]
    async with stream(database, session_id, after=5) as replay:
        assert [each.number async for each in replay] == [6, 7, 8, 9, 10]
    await database.transaction(lambda unit: events.trim(unit, session_id, before=3), name="trim")
    assert await database.read(lambda connection: events.bounds(connection, session_id)) == (6, 10)
    await database.transaction(lambda unit: events.trim(unit, session_id, before=99), name="trim")
    assert await database.read(lambda connection: events.bounds(connection, session_id)) == (11, 10)
    assert await append(database, session_id, note("next")) == 11


async def test_an_outcome_can_be_told_from_what_is_left(database: Database) -> None:
    """P4: a log that no longer begins at the beginning is no reason to fail."""
    session_id = await new_session(database)
    await append(database, session_id, *part("1.1.0", "a", "b", "c"), Draft(EventType.TURN_COMPLETED, {}, TURN))
    await database.transaction(lambda unit: events.trim(unit, session_id, before=3), name="trim")
    assert fold_turn(TURN, await stored_events(database, session_id)).outcome.state == "completed"


async def test_the_end_of_the_turn_before_is_found(database: Database) -> None:
    """A reader of one turn begins after the end of the turn before it, however that ended."""
    session_id = await new_session(database)
    ends = (EventType.TURN_COMPLETED, EventType.TURN_FAILED, EventType.TURN_STOPPED)
    for each in ends:
        await append(database, session_id, note("work"), Draft(each, {}, TURN), note("news"))
    found = [
        await database.read(lambda connection, before=before: events.last_end(connection, session_id, before=before))
        for before in range(1, 11)
    ]
    assert found == [None, None, 2, 2, 2, 5, 5, 5, 8, 8]
