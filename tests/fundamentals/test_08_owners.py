"""Several owners in one runtime: what is not yours is not there."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent

from outlast import Outlast, OutlastError
from outlast.testing import ScriptedModel

Start = Callable[..., Outlast[Any, Any]]


def agent() -> Agent[None, str]:
    return Agent(ScriptedModel(lambda _: "Hello."))


async def test_another_owners_ids_are_unknown_ids(start: Start) -> None:
    """The same answer for what is not there and for what is not yours (G2, P7)."""
    async with start(agent()) as outlast:
        olga, oskar = outlast.owned_by("olga"), outlast.owned_by("oskar")
        session = await olga.create(title="Olga's own")
        for session_id in (session.id, "ses_unknown"):
            with pytest.raises(OutlastError) as refused:
                await oskar.get(session_id)
            assert refused.value.code == "not_found"
        assert [each.title for each in await olga.list()] == ["Olga's own"]
        assert await oskar.list() == []


async def test_sessions_are_named_found_and_filed(start: Start) -> None:
    """By words, metadata, or the name that another system has for it (D10)."""
    async with start(agent()) as outlast:
        river = await outlast.sessions.create(title="The river", metadata={"team": "water"}, external_id="ticket-1")
        await outlast.sessions.create(title="The hill")
        assert [each.id for each in await outlast.sessions.list(search="river")] == [river.id]
        assert [each.id for each in await outlast.sessions.list(metadata={"team": "water"})] == [river.id]
        assert (await outlast.sessions.create(external_id="ticket-1")).id == river.id
        await river.update(is_archived=True)
        assert [each.title for each in await outlast.sessions.list()] == ["The hill"]
        assert [each.title for each in await outlast.sessions.list(archived=True)] == ["The river"]


async def test_a_session_can_be_forked_exported_imported_and_deleted(start: Start) -> None:
    """A fork has the history up to a message; a document goes to another owner or another server (D10)."""
    async with start(agent()) as outlast:
        session = await outlast.sessions.create()
        await session.ask("One.")
        await session.ask("Two.")
        fork = await outlast.sessions.fork(session.id, at=2)
        assert len(await fork.history()) == 2
        copy = await outlast.owned_by("oskar").import_(await session.export())
        assert len(await copy.history()) == 4
        await outlast.sessions.delete(session.id)
        with pytest.raises(OutlastError) as gone:
            await outlast.sessions.get(session.id)
        assert gone.value.code == "not_found"
        assert len(await copy.history()) == 4


async def test_keys_open_the_door_for_an_owner(start: Start) -> None:
    """Of a key only a hash is kept: its text is given once (G1)."""
    async with start(agent()) as outlast:
        key, text = await outlast.keys.make("olga", "laptop", scope="read", expires_in=timedelta(days=30))
        found = await outlast.keys.find(text)
        assert found is not None
        assert (found.owner_id, found.scope) == ("olga", "read")
        await outlast.keys.revoke(key.id)
        assert await outlast.keys.find(text) is None


async def test_what_owners_use_is_added_up(start: Start) -> None:
    """For each owner by day and week; a price nobody knows is None, never zero (H1, H2)."""
    async with start(agent()) as outlast:
        await (await outlast.owned_by("olga").create()).ask("Hi.")
        assert (await outlast.usage_of("olga")).today.requests == 1
        assert (await outlast.usage_of("olga")).today.cost_microdollars is None
        assert (await outlast.usage_of("oskar")).today.requests == 0


async def test_a_pause_accepts_everything_and_starts_nothing(start: Start) -> None:
    """Over restarts too, until somebody ends it (I3)."""
    async with start(agent()) as outlast:
        await outlast.pause()
        session = await outlast.sessions.create()
        assert (await (await session.send("Hi.")).outcome(wait=0.1)).state == "queued"
    async with start(agent()) as outlast:
        await outlast.unpause()
        outcome = await (await outlast.sessions.get(session.id)).settled()
        assert outcome is not None
        assert outcome.text == "Hello."
