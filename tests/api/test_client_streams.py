"""Streams of the client over a wire that is cut: nothing lost, nothing twice (P4, E1, E6, D2)."""

import asyncio
import pkgutil
from contextlib import AsyncExitStack
from itertools import cycle, repeat
from typing import Any

import pytest
from pydantic_ai import Tool

import outlast
from outlast import Event, hints
from outlast.client import connection
from outlast.client.streams import EventStream, Fed
from outlast.errors import NotFound, StoreUnavailable, Unreachable
from outlast.events.news import News
from outlast.testing import call, gate, text
from tests.support.moments.checkpoint import Checkpoint
from tests.support.network.server import client_of, serving
from tests.support.network.wire import BUSY, running
from tests.support.turns.runtime import Runtime, events_of, scripted

STORY = "Once upon a time there was a wire that broke again and again. " * 20


async def test_a_stream_over_a_wire_that_is_cut_has_every_event_once(runtime: Runtime) -> None:
    """P4: it is picked up after the last event, whatever was cut through."""
    async with (
        serving(runtime(scripted([text(STORY, chunk=7)]), coalesce="PT0.001S")) as server,
        running(server.url) as wire,
        client_of(server, url=wire.url) as client,
    ):
        session = await client.sessions.create()
        wire.cut_after(cycle([1_100, 1_703, 2_411, 997]))
        seen: list[Event] = []
        async with session.events() as stream:
            assert (await anext(stream)).type == "session.created"
            await (await server.outlast.owned_by("ada").get(session.id)).send("tell")
            async for event in stream:
                seen.append(event)
                if event.is_terminal:
                    break
        stored = await events_of(await server.outlast.owned_by("ada").get(session.id))
        assert "".join(event.data["text"] for event in seen if event.type == "part.delta") == STORY
        assert [each for each in seen if each.type != "part.delta"] == [
            each for each in stored[1:] if each.type != "part.delta"
        ]
        assert len({event.number for event in seen}) == len(seen)
        assert wire.connections > 5


async def test_a_stream_whose_server_falls_silent_is_asked_for_elsewhere(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E1: a process that is frozen closes nothing; that it no longer says that it is alive is enough."""
    monkeypatch.setattr(connection, "_SILENCE_SECONDS", 0.3)
    answering = Checkpoint()
    async with (
        serving(runtime(scripted([text("One. "), gate(answering), text("Two.")]), heartbeat="PT0.1S")) as server,
        running(server.url) as wire,
        client_of(server, url=wire.url) as client,
    ):
        session = await client.sessions.create()
        await session.send("tell")
        seen: list[Event] = []
        async with session.events() as stream:
            async for event in stream:
                seen.append(event)
                if event.type == "part.delta" and event.data["text"].startswith("One"):
                    await answering.reached()
                    wire.freeze()
                    answering.open()
                if event.is_terminal:
                    break
        assert "".join(event.data["text"] for event in seen if event.type == "part.delta") == "One. Two."
        assert len({event.number for event in seen}) == len(seen)


async def test_a_server_that_takes_a_stream_and_never_answers_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """E1: frozen before it answered: however often it is asked, the client's patience ends."""
    monkeypatch.setattr(connection, "_BEGIN_SECONDS", 0.05)
    monkeypatch.setattr(connection, "_STEADY_SECONDS", 0.01)
    asked = 0

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.read()
        writer.close()

    async with await asyncio.start_server(never, "127.0.0.1", 0) as frozen:
        port = frozen.sockets[0].getsockname()[1]
        found = connection.Connection(f"http://127.0.0.1:{port}", None, patience=0.4)
        with pytest.raises(Unreachable):
            async with asyncio.timeout(20):
                await anext(found.follow("/v1/events", position=lambda: None))
        await found.close()
    assert asked > 1


def _nothing(rows: object) -> list[News]:
    return []


@pytest.mark.parametrize("kind", ["log", "feed"])
async def test_a_stream_waits_while_the_store_is_away(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """P4: a look that fails costs a moment: the stream goes on in the same connection, and has everything."""
    answering = Checkpoint()
    failures = [StoreUnavailable("away") for _ in range(3)]
    place = "outlast.handles.services.log_reader._page" if kind == "log" else "outlast.store.repositories.feed.page"
    async with (
        serving(runtime(scripted([text("One. "), gate(answering), text("Two.")]))) as server,
        running(server.url) as wire,
        client_of(server, url=wire.url) as client,
    ):
        session = await client.sessions.create()
        await session.send("tell")
        await answering.reached()
        seen: list[Event] = []
        async with session.events() if kind == "log" else client.events() as stream:
            while not seen or seen[-1].type not in ("part.delta", "turn.started"):
                found = await anext(stream)
                seen.append(found.event if isinstance(found, Fed) else found)
            plain, connections = pkgutil.resolve_name(place), wire.connections

            def look(*arguments: Any) -> Any:
                if failures:
                    raise failures.pop()
                return plain(*arguments)

            monkeypatch.setattr(place, look)
            monkeypatch.setattr("outlast.store.outbox.news_of", _nothing)  # as signals from other processes are
            answering.open()
            while not seen[-1].is_terminal:
                found = await anext(stream)
                seen.append(found.event if isinstance(found, Fed) else found)
        assert (failures, wire.connections) == ([], connections)


async def test_a_stream_goes_on_when_the_server_starts_again(runtime: Runtime) -> None:
    """P2, P4: a reader need not notice that a server was replaced in the middle of a turn."""
    here = Checkpoint()
    seen: list[Event] = []
    async with AsyncExitStack() as stack:
        async with serving(runtime(scripted([text("Half "), gate(here), text("never")]))) as server:
            wire = await stack.enter_async_context(running(server.url))
            client = await stack.enter_async_context(client_of(server, url=wire.url))
            session = await client.sessions.create()
            stream = await stack.enter_async_context(session.events())
            await session.send("tell")
            async for event in stream:
                seen.append(event)
                if event.type == "part.delta":
                    break
        going_on = asyncio.create_task(rest_of(stream), name="reader")
        async with serving(runtime(scripted("Half and half."))) as server:
            wire.target = server.url
            seen += await going_on
            stored = await events_of(await server.outlast.owned_by("ada").get(session.id))
            dropped = [part for event in stored for part in event.data.get("dropped", ())]
            assert [event for event in seen if event.data.get("part") not in dropped] == stored
            assert len({event.number for event in seen}) == len(seen) > len(stored)
            outcome = await session.result(wait=10)
            assert outcome is not None
            assert outcome.text == "Half and half."
            await stack.aclose()


async def test_a_stream_ends_with_its_session(runtime: Runtime) -> None:
    """D10: readers get a last event and end; afterwards the session is unknown."""
    async with serving(runtime()) as server, client_of(server) as client:
        session = await client.sessions.create()
        async with session.events() as stream:
            assert (await anext(stream)).type == "session.created"
            await client.sessions.delete(session.id)
            assert [event.type async for event in stream] == ["session.deleted"]
        async with session.events() as late:
            with pytest.raises(NotFound):
                await anext(late)


async def rest_of(stream: EventStream) -> list[Event]:
    """Up to the end of a turn."""
    seen: list[Event] = []
    async for event in stream:
        seen.append(event)
        if event.is_terminal:
            break
    return seen


async def test_a_message_whose_answer_is_lost_is_sent_once(runtime: Runtime) -> None:
    """D2: the client asks again with the same key."""
    async with (
        serving(runtime(["Hello Ada."])) as server,
        running(server.url) as wire,
        client_of(server, url=wire.url) as client,
    ):
        wire.loses_answer_to = b"POST /v1/sessions "
        session = await client.sessions.create()
        assert len(await client.sessions.list()) == 1
        wire.loses_answer_to = b"POST /v1/sessions/"
        sent = await session.send("hi")
        assert sent.is_repeat
        assert (await sent.outcome(wait=10)).text == "Hello Ada."
        accepted = [event async for event in session.events(follow=False, types=["input.accepted"])]
        assert len(accepted) == 1


async def test_output_is_followed_over_a_wire_that_is_cut(runtime: Runtime) -> None:
    """B4: every character once, and the task at the end."""
    here = Checkpoint()
    lines = [f"line {number}\n" for number in range(200)]

    async def survey() -> str:
        await here()
        for line in lines:
            outlast.output(line)
            await asyncio.sleep(0)
        return "done"

    tool = Tool(survey, metadata=hints(budget=0.01))
    async with (
        serving(runtime(scripted(call("survey"), "Running.", "Done."), tools=[tool])) as server,
        running(server.url) as wire,
        client_of(server, url=wire.url) as client,
    ):
        session = await client.sessions.create()
        await (await session.send("go")).outcome(wait=10)
        [task] = await session.tasks()
        wire.cut_after(repeat(1_000, 3))
        async with client.tasks.follow(task.id) as pieces:
            here.open()
            text_seen = "".join([piece.text async for piece in pieces])
        assert text_seen == "".join(lines)
        assert pieces.ended is not None
        assert (pieces.ended.state, pieces.ended.result) == ("succeeded", "done")


async def test_the_feed_goes_on_after_a_cut(runtime: Runtime) -> None:
    """E6: from now on, all sessions, every change once."""
    async with (
        serving(runtime(scripted("One.", "Two.", "Three."))) as server,
        running(server.url) as wire,
        client_of(server, url=wire.url) as client,
    ):
        await client.sessions.create(title="before")
        wire.cut_after(cycle([1_100, 1_703]))
        seen: list[Fed] = []
        async with client.events(after="now") as feed:
            first = asyncio.create_task(anext(feed), name="first")
            sessions = server.outlast.owned_by("ada")
            while not first.done():
                await sessions.create(title="after")
                await asyncio.wait({first}, timeout=0.05)
            for _ in range(3):
                await (await sessions.create()).ask("go")
            seen.append(await first)
            async for fed in feed:
                seen.append(fed)
                if [each.event.type for each in seen].count("turn.completed") == 3:
                    break
        begin = seen[0].cursor
        stored = [each async for each in server.outlast.events_of("ada", after=begin, follow=False)]
        assert [tuple(each) for each in seen[1:]] == [tuple(each) for each in stored]
        assert len({each.cursor for each in seen}) == len(seen)


async def test_a_server_that_asks_to_wait_is_waited_for(runtime: Runtime) -> None:
    """G3: `Retry-After` is kept; patience ends."""
    async with serving(runtime()) as server, running(server.url) as wire, client_of(server, url=wire.url) as client:
        session = await client.sessions.create()
        wire.says = BUSY
        begun = asyncio.get_running_loop().time()
        async with client_of(server, url=wire.url) as other:
            assert (await other.sessions.get(session.id)).id == session.id
        assert asyncio.get_running_loop().time() - begun >= 1
        async with client_of(server, url=wire.url, patience=0.2) as hasty:
            await hasty.agents()
            wire.target = "http://127.0.0.1:9"
            wire.cut_after(())
            with pytest.raises(Unreachable):
                await hasty.agents()
