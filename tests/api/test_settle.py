"""A person says over HTTP what became of work whose effect nobody knows; a stranger cannot (A2, P7)."""

import asyncio
from pathlib import Path

import pytest
from pydantic_ai import Tool

from outlast import hints, ids
from outlast.runtime import LOCAL_OWNER
from outlast.testing import ScriptedModel, call, texts_seen
from tests.support.crash import World, crash, session_of
from tests.support.runtime import Runtime, scripted
from tests.support.server import serving


@pytest.mark.timeout(120)
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
        assert settled.json()["metadata"]["settled"] == {"verdict": "failed", "by": "test", "note": ""}
        assert (await ada.post(f"{task}/settle", json=body)).status_code == 409
        await ada.get(f"{session}/result", params={"wait": 10, "until": "settled"})
        released.set()
    assert any("test says of task" in each for each in texts_seen(model.requests[-1].messages))
