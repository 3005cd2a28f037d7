"""Sessions without a title are told apart by how they begin (D10, K1)."""

import asyncio

from pydantic_ai.messages import ModelRequest, UserPromptPart
from typer.testing import CliRunner

from outlast import Client
from outlast.cli.main import app
from tests.support.network.server import client_of, serving
from tests.support.turns.runtime import Runtime, scripted


async def previews(client: Client) -> list[str | None]:
    return [each.preview for each in await client.sessions.list()]


async def test_a_session_is_known_by_the_first_words_of_its_first_message(runtime: Runtime) -> None:
    """In lists, alone, in the library; what follows changes nothing."""
    async with serving(runtime(scripted("Hello.", "Yes."))) as server, client_of(server) as client:
        session = await client.sessions.create()
        assert session.preview is None
        await (await session.send("  Measure\nthe river " + "and the lake " * 20)).outcome(wait=10)
        await (await session.send("And now?")).outcome(wait=10)
        [seen] = await previews(client)
        assert seen is not None
        assert seen.startswith("Measure the river and the lake and")
        assert (len(seen), seen[-1]) == (80, "…")
        assert (await session.refresh()).preview == seen
        assert (await server.outlast.owned_by("ada").get(session.id)).preview == seen
        assert (session.title, session.title_from) == (
            "Measure the river and the lake and the lake and the lake…",
            "message",
        )


async def test_what_was_taken_back_is_not_shown(runtime: Runtime) -> None:
    """D3: an edited message begins otherwise, a removed one not at all."""
    async with serving(runtime(scripted("Hello."))) as server, client_of(server) as client:
        await client.pause()
        session = await client.sessions.create()
        await session.send("My password is hunter2.")
        [waiting] = await session.inbox()
        await session.edit_input(waiting.id, "Open the door.")
        assert await previews(client) == ["Open the door."]
        await session.remove_input(waiting.id)
        assert await previews(client) == [None]
        await session.send("Close the door.")
        assert await previews(client) == ["Close the door."]


async def test_a_later_message_with_the_same_words_gives_no_title(runtime: Runtime) -> None:
    """D3, D10: only the first message tells what a session is called, also when another one that waits is changed."""
    async with serving(runtime(scripted("Hello."))) as server, client_of(server) as client:
        session = await client.sessions.create()
        await (await session.send("Measure the river.")).outcome(wait=10)
        fork = await client.sessions.fork(session.id)
        await client.pause()
        for each in (session, fork):
            for _ in range(2):
                await each.send("Measure the river.")
            first, second = await each.inbox()
            await each.edit_input(first.id, "Close the door.")
            await each.remove_input(second.id)
            assert (await each.refresh()).title == "Measure the river."


async def test_of_the_messages_that_stay_the_first_gives_the_title(runtime: Runtime) -> None:
    """D3, D10: the one before it was taken back."""
    async with serving(runtime(scripted("Hello."))) as server, client_of(server) as client:
        await client.pause()
        session = await client.sessions.create()
        await session.send("My password is hunter2.")
        await session.send("Open the door.")
        [first, _] = await session.inbox()
        await session.remove_input(first.id)
        assert await previews(client) == ["Open the door."]


async def test_copies_begin_as_what_they_were_made_from(runtime: Runtime) -> None:
    """D8: forks, imported documents and histories that pydantic-ai made elsewhere."""
    async with serving(runtime(scripted("Hello."))) as server, client_of(server) as client:
        session = await client.sessions.create()
        await (await session.send("Where is Oslo?")).outcome(wait=10)
        assert (await client.sessions.fork(session.id)).preview == "Where is Oslo?"
        assert (await client.sessions.import_(await session.export())).preview == "Where is Oslo?"
        said = ModelRequest(parts=[UserPromptPart(content=["Where is", "Bergen?"])])
        assert (await server.outlast.sessions.create(history=[said])).preview == "Where is"


async def test_a_list_shows_a_title_or_how_a_session_begins(runtime: Runtime) -> None:
    async with serving(runtime(scripted("Hello.", "Hello."))) as server:
        _, token = await server.outlast.keys.make("ada", "laptop")
        async with Client(server.url, token) as client:
            for title in (None, "Oslo"):
                session = await client.sessions.create(title=title)
                await (await session.send("Where is it?")).outcome(wait=10)
            listed = ["sessions", "list", "--url", server.url, "--token", token]
            shown = (await asyncio.to_thread(CliRunner().invoke, app, listed)).output
    named, untitled = shown.splitlines()[1:]
    assert ("Oslo" in named, "Where" in named) == (True, False)
    assert '"Where is it?"' in untitled
