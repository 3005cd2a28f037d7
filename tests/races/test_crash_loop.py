"""A message that ends whatever process works on it: how often that is tried, and what becomes of it."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from outlast import Outlast, Session
from outlast.events.outcome import Outcome
from outlast.ids import SessionId, TurnId, WorkerId
from outlast.limits import Limits
from outlast.runs.turns import delivery
from outlast.store.repositories import turns
from outlast.store.repositories.inputs import Input
from outlast.store.repositories.turns import TurnRow
from outlast.store.unit import Unit
from outlast.transitions import turn
from outlast.transitions.turns import inbox
from tests.support.stores.store import new_session, opened, under
from tests.support.turns.runtime import Runtime

DEAD = WorkerId("wrk_dead")


async def left_after(runtime: Runtime, deaths: int) -> tuple[SessionId, TurnId]:
    """A turn for one message, claimed and left by so many dead workers: the last one was not missed yet."""
    url = f"sqlite:///{runtime.database}" if isinstance(runtime.database, Path) else runtime.database
    async with opened(url) as database:
        session_id = await new_session(database, owner_id="local")

        def leave(unit: Unit) -> TurnId:
            turn_id = inbox.accept(unit, session_id, "Go.", owner_id="local").turn_id
            assert turn_id is not None
            for death in range(deaths):
                assert turn.claim(unit, turn_id, DEAD) is not None
                if death < deaths - 1:
                    row = row_of(unit.connection, turn_id)
                    turn.requeue(under(Limits(max_claims=100), unit), row, has_crashed=True)
            return turn_id

        return session_id, await database.transaction(leave, name="leave")


def row_of(connection: sa.Connection, turn_id: TurnId) -> TurnRow:
    row = turns.get(connection, turn_id)
    assert row is not None
    return row


async def ended(outlast: Outlast[Any, Any], session_id: SessionId, turn_id: TurnId) -> tuple[Session, Outcome]:
    session = await outlast.sessions.get(session_id)
    outcome = await session.turn(turn_id).outcome()
    assert (outcome.state, (outcome.error or {})["kind"]) == ("failed", "crash_loop")
    assert (await session.refresh()).is_held
    return session, outcome


async def test_a_crash_loop_ends_without_a_look_at_what_caused_it(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4: what was never delivered waits in the inbox, and the session is held until a person says what next."""

    def render(given: Input) -> Any:
        raise AssertionError("this is what ends the process")

    left = await left_after(runtime, 3)
    with monkeypatch.context() as patched:
        patched.setattr(delivery.prompt, "render", render)
        async with runtime(["Answered."]) as outlast:
            session, _ = await ended(outlast, *left)
            (waiting,) = await session.inbox()
            assert waiting.text == "Go."
            row = await outlast.database.read(lambda connection: row_of(connection, left[1]))
            assert (row.attempt, row.crashes) == (4, 3)
    async with runtime(["Answered."]) as outlast:
        session, _ = await ended(outlast, *left)
        assert (await (await session.retry()).outcome()).text == "Answered."
        assert await session.inbox() == []


async def test_a_message_that_ended_its_workers_can_be_removed(runtime: Runtime) -> None:
    """P4: what is sent after that is answered without it."""
    left = await left_after(runtime, 3)
    async with runtime(["Answered."]) as outlast:
        session, _ = await ended(outlast, *left)
        (waiting,) = await session.inbox()
        await session.remove_input(waiting.id)
        assert (await session.ask("Another.")).text == "Answered."
        assert "Go." not in str(await session.history())


async def test_what_is_too_much_even_to_be_ended_is_ended_unread(runtime: Runtime) -> None:
    """P4: a process that dies while it ends a crash loop is not followed by another one."""
    left = await left_after(runtime, 4)
    async with runtime(["Answered."]) as outlast:
        session, _ = await ended(outlast, *left)
        row = await outlast.database.read(lambda connection: row_of(connection, left[1]))
        assert (row.attempt, row.crashes) == (4, 4)
        assert (await (await session.retry()).outcome()).text == "Answered."


async def test_the_limit_is_the_one_that_was_set(runtime: Runtime) -> None:
    """P4: for turns as for tasks."""
    left = await left_after(runtime, 1)
    async with runtime(["Answered."], max_claims=1) as outlast:
        await ended(outlast, *left)
