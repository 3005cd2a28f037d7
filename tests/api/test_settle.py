"""A person says over HTTP what became of work whose effect nobody knows; a stranger cannot (A2, P7)."""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Tool
from typer.testing import CliRunner

from outlast import Client, hints, ids
from outlast.cli.main import app
from outlast.runtime import LOCAL_OWNER
from outlast.testing import ScriptedModel, call, texts_seen
from tests.support.crashes.crash import World, crash, session_of
from tests.support.network.server import serving
from tests.support.turns.runtime import Runtime, scripted


@pytest.mark.timeout(300)
async def test_an_uncertain_call_is_settled_by_its_owner(tmp_path: Path) -> None:
    """A2, P7: after a real crash; the model is told who said so; for a stranger the call is not there."""
    world = World(tmp_path)
    crash(world.folder, "one charge", "tool charge")
    async with world.open("one charge") as outlast:
        session_id = (await session_of(outlast)).id
        await (await session_of(outlast)).settled()
    runtime = Runtime(world.folder / "outlast.db")
    async with serving(runtime(ScriptedModel(lambda _: "Good to know."))) as server:
        owner, ben = await server.client(LOCAL_OWNER), await server.client("ben")
        body = {"verdict": "worked", "note": "I looked at the bank."}
        path = f"/v1/sessions/{session_id}/calls/c1/settle"
        unknown = await ben.post(f"/v1/sessions/{ids.session_id()}/calls/c1/settle", json=body)
        foreign = await ben.post(path, json=body)
        assert (foreign.status_code, foreign.content) == (404, unknown.content)
        settled = await owner.post(path, json=body)
        assert settled.status_code == 200, settled.text
        assert "it took effect" in settled.json()["text"]
        again = await owner.post(path, json=body)
        assert (again.status_code, again.json()["code"]) == (409, "conflict")
        result = await owner.get(f"/v1/sessions/{session_id}/result", params={"wait": 10, "until": "settled"})
        assert result.json()["text"] == "Good to know."


async def test_an_abandoned_task_is_settled_by_its_owner(runtime: Runtime) -> None:
    """A2, B6, P7: a task that ignored its cancel; once, and by its owner only."""
    released = asyncio.Event()

    async def stubborn() -> str:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        return "done after all"

    model = scripted(call("stubborn"), "It runs.", "It was abandoned.", "Good to know.")
    tool = Tool(stubborn, metadata=hints(budget=0.01))
    async with serving(runtime(model, tools=[tool])) as server:
        ada, ben = await server.client(), await server.client("ben")
        session = f"/v1/sessions/{(await ada.post('/v1/sessions', json={})).json()['id']}"
        await ada.post(f"{session}/messages", json={"text": "go"})
        await ada.get(f"{session}/result", params={"wait": 10})
        task = f"/v1/tasks/{(await ada.get('/v1/tasks')).json()['items'][0]['id']}"
        ended = (await ada.post(f"{task}/cancel", json={"wait": 10})).json()
        assert (ended["state"], ended["error"]["kind"]) == ("failed", "abandoned")
        body = {"verdict": "failed"}
        unknown = await ben.post(f"/v1/tasks/{ids.task_id()}/settle", json=body)
        foreign = await ben.post(f"{task}/settle", json=body)
        assert (foreign.status_code, foreign.content) == (404, unknown.content)
        settled = await ada.post(f"{task}/settle", json=body)
        assert settled.status_code == 200, settled.text
        said = settled.json()["settled"]
        assert (said["verdict"], said["by"], said["note"]) == ("failed", "test", "")
        assert said["at"]
        for state, count in (("settled", 1), ("failed", 0)):
            assert len((await ada.get("/v1/tasks", params={"state": state})).json()["items"]) == count
        assert (await ada.post(f"{task}/settle", json=body)).status_code == 409
        await ada.get(f"{session}/result", params={"wait": 10, "until": "settled"})
        released.set()
    assert any("test says of task" in each for each in texts_seen(model.requests[-1].messages))


async def test_every_view_of_the_command_tells_what_is_unknown_and_what_was_settled(runtime: Runtime) -> None:
    """A2, I3, K1: `stop`, `sessions show` and `doctor` name interrupted calls; `ps` shows what was said of a task."""
    here, released = asyncio.Event(), asyncio.Event()

    async def charge() -> None:
        here.set()
        await asyncio.Event().wait()

    async def stubborn() -> str:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        return "done after all"

    model = scripted(
        call("stubborn"), "It runs.", "It was abandoned.", "Known.", call("charge", call_id="c1"), "Known."
    )
    tools = [Tool(stubborn, metadata=hints(budget=0.01)), charge]
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(runtime(model, tools=tools)))
        _, token = await server.outlast.keys.make("ada", "command", role="admin")
        ada = await stack.enter_async_context(Client(server.url, token))
        session = await ada.sessions.create()
        await (await session.send("go")).outcome(wait=10)
        (task,) = await ada.tasks.list()
        await ada.tasks.cancel(task.id)
        found = await said(server.url, token, "doctor")
        assert f"outlast settle {task.id} worked|failed|try_again" in found
        assert "nobody knows its effect" in found
        await session.settled(wait=10)
        shown = await said(server.url, token, "sessions", "show", session.id)
        assert f"nobody knows its effect: outlast settle {task.id} worked|failed|try_again" in shown
        await said(server.url, token, "settle", task.id, "worked", "--by", "anna")
        settled = (await ada.tasks.get(task.id)).settled
        assert settled is not None
        assert settled.by == "anna (key command)"
        await session.settled(wait=10)
        shown = await said(server.url, token, "ps", "--all")
        assert "settled: worked" in shown
        assert "failed" not in shown
        assert await said(server.url, token, "doctor") == "Nothing is stuck.\n"
        await session.send("Charge.")
        await here.wait()
        assert "outlast settle c1 worked|failed|try_again --session" in await said(
            server.url, token, "stop", session.id
        )
        assert "c1" in await said(server.url, token, "sessions", "show", session.id)
        assert "settled: worked" in await said(server.url, token, "sessions", "show", session.id)
        assert f"outlast settle c1 worked|failed|try_again --session {session.id}" in await said(
            server.url, token, "doctor"
        )
        released.set()


@pytest.mark.parametrize(
    ("hint", "known", "typed"),
    [
        ({"read_only": True}, "; its tool may be run again without harm", "try_again"),
        ({}, ", nobody knows its effect", "worked|failed|try_again"),
    ],
    ids=["read-only", "any"],
)
async def test_doctor_and_show_say_the_same_of_a_task_whose_effect_is_open(
    runtime: Runtime, hint: dict[str, Any], known: str, typed: str
) -> None:
    """A2, I3, K1: one that may be run again does not look like one that may have done something."""
    released = asyncio.Event()

    async def stubborn() -> str:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        return "done after all"

    model = scripted(call("stubborn"), "It runs.", "It was abandoned.")
    tools = [Tool(stubborn, metadata=hints(budget=0.01, **hint))]
    async with serving(runtime(model, tools=tools)) as server, AsyncExitStack() as stack:
        stack.callback(released.set)  # also where something is not as it should be: the server waits for its tools
        _, token = await server.outlast.keys.make("ada", "command", role="admin")
        async with Client(server.url, token) as ada:
            session = await ada.sessions.create()
            await (await session.send("go")).outcome(wait=10)
            (task,) = await ada.tasks.list()
            await ada.tasks.cancel(task.id)
            await session.settled(wait=10)
            problem, command = f"stubborn ignored its cancel{known}", f"outlast settle {task.id} {typed}"
            (found,) = json.loads(await said(server.url, token, "doctor", "--json"))
            assert found == {"id": task.id, "problem": problem, "advice": command}
            shown = await said(server.url, token, "sessions", "show", session.id)
            assert f"{task.id} {problem}: {command}\n" in shown


async def said(url: str, token: str, *arguments: str) -> str:
    """What the command puts out. In a thread: it has an event loop of its own."""
    given = [*arguments, "--url", url, "--token", token]
    result = await asyncio.to_thread(CliRunner().invoke, app, given)
    return result.stdout
