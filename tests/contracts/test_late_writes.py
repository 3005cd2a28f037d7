"""Writes that nobody waits for may be sent together; whoever reads, or writes the same again, notices nothing."""

import pytest
import sqlalchemy as sa

from outlast import ids
from outlast.ids import TurnId
from outlast.store.database import Database
from outlast.store.locked_session import LockedSession
from outlast.store.repositories import inputs, messages, spending, turns
from outlast.store.repositories.inputs import InputKind, InputState, Mode
from outlast.store.repositories.turns import Origin
from outlast.store.sql.batch import Batch
from outlast.store.sql.statement import Write
from outlast.store.unit import Unit
from tests.support.stores.store import OWNER, append, new_session, note, stored_notes

USAGE = {"input_tokens": 3, "output_tokens": 2, "cache_read_tokens": 0, "cache_write_tokens": 0, "cost_microdollars": 5}


def new_turn(unit: Unit, session: LockedSession) -> TurnId:
    turn_id = ids.turn_id()
    turns.insert(unit, session, turn_id, origin=Origin.USER, is_admitted=True, first_event=1, model=None)
    return turn_id


async def test_a_row_is_there_for_whoever_asks_in_the_same_transaction(database: Database) -> None:
    session_id = await new_session(database)

    def change(unit: Unit) -> None:
        session = unit.lock(session_id)
        turn_id = new_turn(unit, session)
        found = turns.get(unit.connection, turn_id)
        assert found is not None
        assert found.usage == {}
        turns.set_values(unit, turn_id, requests=1)
        turns.set_values(unit, turn_id, usage='{"requests": 1}')
        found = turns.get(unit.connection, turn_id)
        assert found is not None
        assert (found.requests, found.usage) == (1, {"requests": 1})

    await database.transaction(change, name="change")


async def test_rows_are_changed_in_the_order_in_which_it_was_said(database: Database) -> None:
    """A new row is changed twice, and everything else of a commit goes with it."""
    session_id = await new_session(database)

    def change(unit: Unit) -> tuple[TurnId, ids.InputId]:
        session = unit.lock(session_id)
        turn_id, input_id = new_turn(unit, session), ids.input_id()
        turns.set_values(unit, turn_id, requests=1)
        spending.add(unit, OWNER, USAGE)
        turns.set_values(unit, turn_id, requests=2)
        inputs.insert(
            unit, session, input_id, kind=InputKind.MESSAGE, mode=Mode.STEER, text="hi", body={}, was_busy=False
        )
        for at, body in enumerate(("{}", "[]")):
            messages.append(unit, session, turn_id=turn_id, kind="request", body=body, event=at)
        inputs.mark_delivered(unit, [input_id], turn_id, 2)
        spending.add(unit, OWNER, USAGE)
        unit.append(session_id, [note("one"), note("two")])
        return turn_id, input_id

    turn_id, input_id = await database.transaction(change, name="change")

    def check(connection: sa.Connection) -> None:
        turn, sent = turns.get(connection, turn_id), inputs.get(connection, session_id, input_id)
        assert turn is not None
        assert sent is not None
        assert turn.requests == 2
        assert (sent.state, sent.turn_id, sent.message) == (InputState.DELIVERED, turn_id, 2)
        assert [each.body for each in messages.page(connection, session_id)] == ["{}", "[]"]
        assert spending.known_on(connection, OWNER, turn.created_at.date()) == 10

    await database.read(check)
    assert await stored_notes(database, session_id) == ["one", "two"]
    assert await append(database, session_id, note("three")) == 3


async def test_what_fails_at_the_end_leaves_nothing(database: Database) -> None:
    """P1: also what was only going to be written."""
    session_id = await new_session(database)

    def change(unit: Unit) -> None:
        session = unit.lock(session_id)
        messages.append(unit, session, turn_id=None, kind="request", body="{}", event=1)
        session.set(metadata=None)

    with pytest.raises(Exception, match="metadata"):
        await database.transaction(change, name="change")
    assert await database.read(lambda connection: messages.page(connection, session_id)) == []


def test_a_batch_takes_nothing_that_may_touch_a_row_twice() -> None:
    insert = Write("messages", "INSERT", (), is_insert=True)
    update = Write("messages", "UPDATE", (), is_insert=False)
    other = Write("turns", "UPDATE", (), is_insert=False)
    batch = Batch()
    batch.add(insert)
    assert batch.takes(insert)
    assert not batch.takes(update)
    assert batch.takes(other)
    batch.add(other)
    assert not batch.takes(other)
    assert [batch.touches(name) for name in ("messages", "turns", "inputs")] == [True, True, False]
