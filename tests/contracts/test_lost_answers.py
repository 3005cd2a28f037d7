"""A connection that breaks during a commit: the caller is told what became of it, not what might have."""

import pytest

from outlast.store.database import Database
from outlast.store.repositories import outputs
from outlast.store.repositories.outputs import Chunk
from outlast.store.unit import Unit
from tests.support.network.cut_connection import wire_to
from tests.support.stores.store import Outbox, append, new_session, note, opened, stored_notes


async def test_a_commit_whose_answer_is_lost_is_acknowledged_once(postgres_url: str) -> None:
    """P1, P3: it stands, so it must not be reported as failed and written again."""
    async with wire_to(postgres_url) as (wire, url), opened(url) as database:
        session_id = await new_session(database)
        outbox = Outbox()
        database.attach(outbox)
        wire.cut = "answer"
        assert await append(database, session_id, note("kept")) == 1
        assert wire.cuts == 1
        assert await stored_notes(database, session_id) == ["kept"]
        assert len(outbox.delivered) == 1
        assert await append(database, session_id, note("next")) == 2


async def test_a_commit_that_is_lost_itself_is_made_again(postgres_url: str) -> None:
    """P1: it never reached the server, so nothing stood: it is there once, and told of once."""
    async with wire_to(postgres_url) as (wire, url), opened(url) as database:
        session_id = await new_session(database)
        outbox = Outbox()
        database.attach(outbox)
        wire.cut = "commit"
        assert await append(database, session_id, note("kept")) == 1
        assert wire.cuts == 1
        assert len(outbox.delivered) == 1
        assert await append(database, session_id, note("next")) == 2
        assert await stored_notes(database, session_id) == ["kept", "next"]


NEVER_GIVEN = "4000000"


async def number_of_another(database: Database) -> str:
    """That of a transaction which was committed."""
    return await database.transaction(lambda unit: unit.transaction_id, name="other")


@pytest.mark.parametrize("is_given_again", [True, False])
async def test_a_commit_that_a_crashed_server_forgot_is_made_again(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, is_given_again: bool
) -> None:
    """P1: its number may be another transaction's by now, or nobody's yet: neither says that this one stands."""
    async with wire_to(postgres_url) as (wire, url), opened(url) as database:
        session_id = await new_session(database)
        number = await number_of_another(database) if is_given_again else NEVER_GIVEN
        monkeypatch.setattr(Unit, "transaction_id", property(lambda unit: unit.now and number))
        wire.cut = "commit"
        assert await append(database, session_id, note("kept")) == 1
        assert wire.cuts == 1
        assert await stored_notes(database, session_id) == ["kept"]


async def test_output_that_a_crashed_server_forgot_is_written_again(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: no event tells of it, so the chunk itself must be there."""
    async with wire_to(postgres_url) as (wire, url), opened(url) as database:
        session_id = await new_session(database)
        number = await number_of_another(database)
        monkeypatch.setattr(Unit, "transaction_id", property(lambda unit: unit.now and number))
        wire.cut = "commit"

        def write(unit: Unit) -> None:
            outputs.append(unit, session_id, "call", [Chunk(0, "2.4 m\n")])

        await database.transaction(write, name="output")
        assert wire.cuts == 1
        assert (
            await database.read(lambda found: outputs.read(found, session_id, "call", offset=0, length=9))
        ).text == ("2.4 m\n")
