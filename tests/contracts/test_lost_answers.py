"""A connection that breaks during a commit: the caller is told what became of it, not what might have."""

from tests.support.cut_connection import wire_to
from tests.support.store import Outbox, append, new_session, note, opened, stored_notes


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
