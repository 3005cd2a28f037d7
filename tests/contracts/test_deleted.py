"""A session marked as deleted is hidden from every read and lock, and is removed bit by bit; on both databases."""

import pytest
import sqlalchemy as sa

from outlast import ids
from outlast.errors import NotFound
from outlast.ids import SessionId, TaskId, TurnId, WorkerId
from outlast.store.database import Database
from outlast.store.repositories import deleted, events, sessions, tasks, turns
from outlast.store.repositories.stored_task import NewTask
from outlast.store.tables import events as event_rows
from outlast.store.tables import sessions as session_rows
from outlast.store.unit import Unit
from outlast.transitions import deletion, turn
from outlast.transitions.tasks import task_moves
from outlast.transitions.turns import inbox
from outlast.wire.task_state import TaskState
from tests.support.stores.store import OWNER, append, new_session, note

ME, OTHER = WorkerId("wrk_1"), WorkerId("wrk_2")


async def busy_session(database: Database) -> tuple[SessionId, TurnId, TaskId]:
    """One with a running turn and a running task."""
    session_id = await new_session(database)

    def begin(unit: Unit) -> tuple[TurnId, TaskId]:
        accepted = inbox.accept(unit, session_id, "Go.", owner_id=OWNER)
        assert accepted.turn_id is not None
        assert turn.claim(unit, accepted.turn_id, ME) is not None
        task = task_moves.make(unit, session_id, NewTask(ids.task_id(), title="survey", agent="agent"), worker_id=ME)
        return accepted.turn_id, task.id

    turn_id, task_id = await database.transaction(begin, name="begin")
    return session_id, turn_id, task_id


async def mark(database: Database, session_id: SessionId) -> None:
    await database.transaction(lambda unit: deletion.mark(unit, session_id, owner_id=OWNER), name="delete")


async def test_a_marked_session_is_hidden_everywhere(database: Database) -> None:
    """D10: with its turns and tasks; only whoever reads its log already may read on to the end."""
    session_id, turn_id, task_id = await busy_session(database)
    await mark(database, session_id)

    def look(connection: sa.Connection) -> None:
        assert sessions.get(connection, session_id, OWNER) is None
        assert sessions.page(connection, OWNER, limit=10).items == []
        assert turns.get(connection, turn_id) is None
        assert turns.running_without(connection, OTHER) == []
        assert turns.open_of_owner(connection, OWNER) == (0, 0)
        assert tasks.get(connection, task_id) is None
        assert tasks.page(connection, owner_id=OWNER) == []
        assert tasks.running_without(connection, OTHER) == []
        assert events.bounds(connection, session_id) is None
        bounds = events.bounds(connection, session_id, owner_id=OWNER, with_deleted=True)
        assert bounds is not None
        last = events.page(connection, session_id, bounds[1] - 1)
        assert [event.type for event in last] == ["session.deleted"]
        assert events.bounds(connection, session_id, owner_id="someone else", with_deleted=True) is None

    await database.read(look)
    with pytest.raises(NotFound):
        await database.transaction(lambda unit: unit.lock(session_id), name="lock")
    assert await database.transaction(lambda unit: turn.claim(unit, turn_id, ME), name="claim") is None
    ended = await database.transaction(
        lambda unit: task_moves.end(unit, task_id, TaskState.SUCCEEDED, attempt=1), name="end"
    )
    assert ended == "stale_attempt"
    with pytest.raises(NotFound):
        await mark(database, session_id)


async def test_the_rows_are_removed_bit_by_bit_and_the_mark_last(database: Database) -> None:
    """D10: whoever dies in between leaves the mark; others' rows stay."""
    session_id, _, _ = await busy_session(database)
    other = await new_session(database)
    await append(database, other, note("stays"))
    await append(database, session_id, *(note(n) for n in range(6_000)))
    await mark(database, session_id)
    rounds = 1
    while not await database.transaction(lambda unit: deleted.remove_some(unit, session_id), name="delete.rows"):
        rounds += 1
    assert rounds == 3
    assert await database.read(deleted.marked) == [session_id]
    assert await database.transaction(lambda unit: deleted.remove_last(unit, session_id), name="delete.session")
    assert await database.read(deleted.marked) == []
    assert not await database.transaction(lambda unit: deleted.remove_last(unit, other), name="delete.session")

    def left(connection: sa.Connection) -> tuple[list[str], list[str]]:
        kept = connection.execute(sa.select(session_rows.c.id)).scalars().all()
        logged = connection.execute(sa.select(event_rows.c.session_id)).scalars().all()
        return list(kept), list(logged)

    assert await database.read(left) == ([other], [other])
