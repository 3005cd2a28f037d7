"""The Python client: the nouns of the library over HTTP, and its errors (K2, D1, D2, D5, B1)."""

import asyncio
import subprocess
import sys
from typing import cast

import pytest
from pydantic import ValidationError
from pydantic_ai import Tool

import outlast
from outlast import Attachment, Client, Context, hints
from outlast.errors import Conflict, InvalidInput, NotFound, ServerFault, SessionBusy, Unauthenticated, Unreachable
from outlast.testing import call, gate, text
from tests.support.moments.checkpoint import Checkpoint
from tests.support.network.server import client_of, serving
from tests.support.network.wire import HELLO, running
from tests.support.turns.runtime import Runtime, scripted


async def test_a_question_is_asked_and_answered(runtime: Runtime) -> None:
    """K2, D1: what the library does, with the same words."""
    async with serving(runtime(["Hello Ada."])) as server, client_of(server) as client:
        session = await client.sessions.create(title="Oslo", metadata={"team": "a"})
        outcome = await session.ask("hi", wait=10)
        assert (outcome.state, outcome.text) == ("completed", "Hello Ada.")
        async with session.events(follow=False) as stream:
            types = [event.type async for event in stream]
        assert (types[0], types[-1]) == ("session.created", "turn.completed")
        assert [each.position for each in (await session.messages()).items] == [1, 2]
        assert (await session.result(wait=1)) == outcome
        assert [each.name for each in await client.agents()] == ["agent"]


async def test_sessions_are_found_changed_and_listed(runtime: Runtime) -> None:
    """D10"""
    async with serving(runtime()) as server, client_of(server) as client:
        first = await client.sessions.create(title="Oslo", external_id="trip")
        assert (await client.sessions.create(external_id="trip")).id == first.id
        second = await client.sessions.create(title="Bergen", metadata={"team": "b"})
        await first.update(title="Oslo and back")
        assert (await client.sessions.get(first.id)).title == "Oslo and back"
        page = await client.sessions.page(limit=1)
        rest = await client.sessions.page(limit=1, before=page.next)
        assert [each.id for each in (*page.items, *rest.items)] == [first.id, second.id]
        assert [each.id for each in await client.sessions.list(metadata={"team": "b"})] == [second.id]
        await first.update(is_archived=True)
        assert [each.id for each in await client.sessions.list()] == [second.id]
        assert len(await client.sessions.list(archived=None)) == 2


async def test_a_busy_session_keeps_what_is_sent(runtime: Runtime) -> None:
    """D2, D5: the inbox, edits, and the turn in which a message is delivered in the end."""
    here = Checkpoint()
    async with (
        serving(runtime(scripted([text("One"), gate(here), text(".")], "Two."))) as server,
        client_of(server) as client,
    ):
        session = await client.sessions.create()
        first = await session.send("first", context=Context("a page"), files=[Attachment("a.txt", b"hi", "text/plain")])
        await here.reached()
        second = await session.send("second", when_busy="queue")
        assert (second.turn_id, second.place) == (None, 1)
        with pytest.raises(SessionBusy):
            await session.send("no", when_busy="reject")
        assert (await second.outcome(wait=0)).state == "queued"
        assert [each.id for each in await session.inbox()] == [second.input_id]
        await session.edit_input(second.input_id, "second, but better")
        third = await session.send("third", when_busy="queue")
        await session.remove_input(third.input_id)
        with pytest.raises(Conflict):
            await third.turn()
        waiting = asyncio.create_task(second.outcome(wait=20))
        here.open()
        assert (await first.outcome(wait=20)).text == "One."
        assert (await waiting).text == "Two."
        assert (await session.input(second.input_id)).text == "second, but better"


async def test_stop_resume_and_retry(runtime: Runtime) -> None:
    """D5, P6"""
    here = Checkpoint()
    async with serving(runtime(scripted([text("Once"), gate(here)], "Again."))) as server, client_of(server) as client:
        session = await client.sessions.create()
        await session.send("go")
        await here.reached()
        stopped = await session.stop()
        assert stopped is not None
        assert (stopped.state, stopped.text) == ("stopped", "Once")
        assert (await session.refresh()).state == "held"
        assert await session.resume() is None
        assert (await (await session.retry()).outcome(wait=10)).text == "Again."
        assert await session.stop() is None


async def test_tasks_are_listed_waited_for_and_cancelled(runtime: Runtime) -> None:
    """B1, B4, B6"""
    here = Checkpoint()

    async def survey() -> str:
        outlast.output("measuring\n")
        await here()
        return "12 metres"

    steps = scripted(call("survey"), "It is running.", "12 metres.", call("survey"), "Again.", "It was canceled.")
    tool = Tool(survey, metadata=hints(budget=0.01))
    async with serving(runtime(steps, tools=[tool])) as server, client_of(server) as client:
        session = await client.sessions.create()
        sent = await session.send("survey")
        assert (await sent.outcome(wait=10)).text == "It is running."
        [task] = await client.tasks.list(state="open")
        assert (await client.tasks.wait(task.id, seconds=0)).state == "running"
        assert (await client.tasks.output(task.id)).text == "measuring\n"
        assert not await session.is_settled()
        asking = asyncio.create_task(session.settled(wait=20))
        turn = session.turn(sent.turn_id or "")
        assert (await sent.outcome(wait=0.1, settle=True)).turn_id == sent.turn_id
        settling = [asyncio.create_task(each.outcome(wait=20, settle=True)) for each in (sent, turn)]
        here.open()
        assert (await client.tasks.wait(task.id, seconds=20)).result == "12 metres"
        settled = await asking
        assert settled is not None
        assert settled.text == "12 metres."
        assert [each.text for each in await asyncio.gather(*settling)] == ["12 metres.", "12 metres."]
        assert await session.is_settled()
        assert (await client.tasks.cancel(task.id)).state == "succeeded"
        with pytest.raises(Conflict):
            await client.tasks.settle(task.id, "worked")
        assert await session.tasks() == [await server.outlast.tasks_of("ada").get(task.id)], "one view for both"
        with pytest.raises(ValidationError):
            task.title = "another"  # pyright: ignore[reportAttributeAccessIssue] - that is the point
        assert (await client.tasks.page(limit=1)).next is None


async def test_problems_are_the_errors_of_the_library(runtime: Runtime) -> None:
    """G3: the same class by code; another owner's session is simply unknown."""
    async with serving(runtime()) as server, client_of(server) as ada, client_of(server, "bob") as bob:
        session = await ada.sessions.create()
        with pytest.raises(NotFound, match="no such session"):
            await bob.sessions.get(session.id)
        with pytest.raises(InvalidInput):
            await session.send("")
        assert await session.result(wait=0) is None
        async with Client(server.url, "olk_wrong") as stranger:
            with pytest.raises(Unauthenticated, match="not accepted"):
                await stranger.sessions.list()
            with pytest.raises(Unauthenticated):
                async with stranger.events() as stream:
                    await anext(stream)
    async with Client(server.url, "olk_wrong") as late:
        with pytest.raises(Unreachable, match="is it running"):
            await late.sessions.list()


async def test_what_is_no_server_or_no_id_is_told(runtime: Runtime) -> None:
    """K2: an id stays one part of a path, and nothing foreign is taken for an answer."""
    for url, token in (("127.0.0.1:8000", "t"), ("http://", "t"), ("http://127.0.0.1:8000", "t\n")):
        with pytest.raises(InvalidInput):
            Client(url, token)
    async with serving(runtime()) as server, running(server.url) as wire, client_of(server, url=wire.url) as client:
        session = await client.sessions.create()
        for id_ in (f"{session.id}/inbox", f"{session.id}?x", "../agents", "ses_%2e", ""):
            with pytest.raises(NotFound):
                await client.sessions.get(id_)
        for text_ in ("\ud800", cast(str, float("nan"))):
            with pytest.raises(InvalidInput, match="cannot be sent"):
                await session.update(title=text_)
        with pytest.raises(NotFound):
            await client.tasks.get("tsk_\ud800")
        wire.cut_after(())
        wire.says = HELLO
        with pytest.raises(ServerFault, match="No Outlast answers at"):
            await client.agents()


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        ("404 Not Found", "Content-Type: application/json\r\n", '{"detail":"Not Found"}'),
        ("404 Not Found", "Content-Type: text/html\r\n", "<h1>Not Found</h1>"),
        ("405 Method Not Allowed", "", ""),
        ("307 Temporary Redirect", "Location: https://example.com/\r\n", ""),
        ("200 OK", "Content-Type: text/html\r\n", "<h1>Welcome</h1>"),
    ],
)
async def test_an_address_at_which_something_else_answers_is_told(
    runtime: Runtime, status: str, headers: str, body: str
) -> None:
    """K2: for what is asked and for streams, at once; a server mounted under a path is the common case."""
    said = f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()
    async with running("http://127.0.0.1:9") as wire, Client(wire.url, "t") as client:
        wire.says = said
        with pytest.raises(ServerFault, match=f"No Outlast answers at {wire.url}.*is a path missing"):
            await client.agents()
        wire.says = said
        with pytest.raises(ServerFault, match=f"No Outlast answers at {wire.url}.*is a path missing"):
            async with client.events() as stream:
                await anext(stream)


async def test_sessions_are_forked_exported_imported_and_answered_anew(runtime: Runtime) -> None:
    """D8, D10"""
    async with serving(runtime(scripted("One.", "Two.", "One, better."))) as server, client_of(server) as client:
        session = await client.sessions.create(title="Oslo")
        await session.ask("first", wait=10)
        await session.ask("second", wait=10)
        fork = await client.sessions.fork(session.id, at=2, title="Bergen")
        assert (fork.title, len((await fork.messages()).items)) == ("Bergen", 2)
        again = await client.sessions.import_(await session.export())
        assert len((await again.messages()).items) == 4
        assert (await (await fork.regenerate()).outcome(wait=10)).text == "One, better."
        report = await client.usage()
        assert (report.owner_id, report.today.requests) == ("ada", 3)
        with pytest.raises(InvalidInput):
            await client.sessions.import_({"format": "something else"})


async def test_keys_are_made_and_revoked(runtime: Runtime) -> None:
    """G1"""
    async with serving(runtime()) as server, client_of(server) as admin:
        made, text = await admin.keys.make("bob", "laptop", scope="read")
        async with Client(server.url, text) as bob:
            assert await bob.sessions.list() == []
            await admin.keys.revoke(made.id)
            with pytest.raises(Unauthenticated):
                await bob.sessions.list()
        assert [each.name for each in await admin.keys.list("bob")] == ["laptop"]
        assert (await admin.login_link()).startswith(f"{server.url}/#token=")


def test_the_client_needs_no_runtime() -> None:
    """K2: it starts fast; what it does not use is not imported."""
    code = (
        "import sys; from outlast import Client; "
        "print([each for each in ('pydantic_ai', 'sqlalchemy', 'fastapi', 'obstore') if each in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"
