"""Event numbers: they rise strictly within a session, and the order of commits is the order of numbers."""

import asyncio

import pytest
import sqlalchemy as sa

from outlast.errors import NotFound
from outlast.events.event import Event
from outlast.ids import SessionId
from outlast.store.database import Database
from outlast.store.unit import Unit
from tests.support.stores.store import OWNER, Outbox, append, new_session, note, stored_events


async def test_numbers_rise_without_gap_under_concurrent_appends(database: Database) -> None:
    """P4: many writers on one session, each with several events: every number once."""
    session_id = await new_session(database)
    lasts = await asyncio.gather(*(append(database, session_id, note(n), note(n), note(n)) for n in range(40)))
    stored = await stored_events(database, session_id)
    assert [event.number for event in stored] == list(range(1, 121))
    assert sorted(lasts) == list(range(3, 121, 3))
    for last in lasts:
        together = {event.data["reason"] for event in stored[last - 3 : last]}
        assert len(together) == 1, "the events of one transaction stand together"


async def test_sessions_have_numbers_of_their_own(database: Database) -> None:
    first, second = await new_session(database), await new_session(database)
    await asyncio.gather(*(append(database, each, note(n)) for n in range(10) for each in (first, second)))
    for each in (first, second):
        assert [event.number for event in await stored_events(database, each)] == list(range(1, 11))


async def test_whoever_sees_a_number_can_read_all_before_it(database: Database) -> None:
    """P4: commit order is number order, so a reader that follows never steps over a late event."""
    session_id = await new_session(database)
    seen: list[list[int | None]] = []

    async def follow() -> None:
        position = 0
        while position < 60:
            page: list[Event] = await stored_events(database, session_id, after=position)
            if page:
                seen.append([event.number for event in page])
                position = page[-1].number or 0

    await asyncio.gather(follow(), *(append(database, session_id, note(n)) for n in range(60)))
    assert [number for page in seen for number in page] == list(range(1, 61))


async def test_events_are_handed_on_in_the_order_of_their_numbers(database: Database) -> None:
    session_id = await new_session(database)
    outbox = Outbox()
    database.attach(outbox)
    await asyncio.gather(*(append(database, session_id, note(n)) for n in range(30)))
    told = [event.number for committed in outbox.delivered for event in committed.events]
    assert sorted(filter(None, told)) == list(range(1, 31))


async def test_the_lock_serialises_those_who_read_in_order_to_decide(database: Database) -> None:
    """P5: read, decide, write under the session's lock: no update is lost, on PostgreSQL too."""
    session_id = await new_session(database)

    def count(unit: Unit) -> None:
        session = unit.lock(session_id)
        if unit.connection.dialect.name == "postgresql":
            unit.connection.execute(sa.text("SELECT pg_sleep(0.001)"))
        session.next("last_input")

    await asyncio.gather(*(database.transaction(count, name="count") for _ in range(25)))
    last = await database.read(lambda connection: connection.execute(sa.text("SELECT last_input FROM sessions")).one())
    assert last.last_input == 25


async def test_a_session_of_somebody_else_is_unknown(database: Database) -> None:
    """P7: another owner's id and an id that never was get the same answer."""
    mine = await new_session(database)
    answers: list[tuple[str, str]] = []
    for session_id, owner in ((mine, "someone else"), (SessionId("ses_never"), OWNER)):
        with pytest.raises(NotFound) as caught:
            await database.transaction(
                lambda unit, session_id=session_id, owner=owner: unit.lock(session_id, owner_id=owner), name="lock"
            )
        answers.append((caught.value.code, caught.value.message))
    assert answers[0] == answers[1]


async def test_the_owner_is_checked_also_when_the_session_is_already_locked(database: Database) -> None:
    """P7: a lock taken for the runtime's own use opens nothing to an owner."""
    session_id = await new_session(database)

    def twice(unit: Unit) -> None:
        unit.lock(session_id)
        unit.lock(session_id, owner_id="someone else")

    with pytest.raises(NotFound):
        await database.transaction(twice, name="twice")
