"""Background tasks over HTTP: listed, waited for, cancelled, their output (B1, B2, B6)."""

import asyncio

import httpx2

import outlast
from outlast import hints
from outlast.testing import call
from tests.support.moments.checkpoint import Checkpoint
from tests.support.network.server import Frame, Served, frames, serving
from tests.support.turns.runtime import Runtime, scripted


class Survey:
    """A tool that is parked at once and goes on until it is let."""

    def __init__(self) -> None:
        self.here = Checkpoint()

    async def survey(self) -> str:
        outlast.output("measuring\n")
        outlast.progress(1, 2, label="half")
        await self.here()
        outlast.output("done\n")
        return "12 metres"


async def parked(server: Served, ada: httpx2.AsyncClient) -> str:
    """A session with one parked call; gives the task's path."""
    session_id = (await ada.post("/v1/sessions", json={})).json()["id"]
    await ada.post(f"/v1/sessions/{session_id}/messages", json={"text": "survey"})
    await ada.get(f"/v1/sessions/{session_id}/result", params={"wait": 10})
    tasks = (await ada.get("/v1/tasks", params={"session": session_id})).json()["items"]
    assert [each["state"] for each in tasks] == ["running"]
    return f"/v1/tasks/{tasks[0]['id']}"


def with_survey(runtime: Runtime, survey: Survey) -> outlast.Outlast[None, str]:
    from pydantic_ai import Tool

    tool = Tool(survey.survey, metadata=hints(budget=0.01))
    return runtime(scripted(call("survey"), "It is running.", "It is 12 metres."), tools=[tool])


async def test_a_task_is_waited_for_and_its_output_read(runtime: Runtime) -> None:
    """B1, B4: the same task over HTTP; waiting holds until its end."""
    survey = Survey()
    async with serving(with_survey(runtime, survey)) as server:
        ada = await server.client()
        task = await parked(server, ada)
        now = (await ada.get(task)).json()
        assert (now["tool"], now["state"], now["progress"]["label"]) == ("survey", "running", "half")
        assert (await ada.get(f"{task}/output")).json()["text"] == "measuring\n"
        waiting = asyncio.create_task(ada.get(task, params={"wait": 10}))
        survey.here.open()
        ended = (await waiting).json()
        assert (ended["state"], ended["result"]) == ("succeeded", "12 metres")
        assert [each["id"] for each in (await ada.get("/v1/tasks", params={"state": "open"})).json()["items"]] == []
        assert len((await ada.get("/v1/tasks", params={"state": "succeeded"})).json()["items"]) == 1


async def test_output_is_followed_until_the_task_ends(runtime: Runtime) -> None:
    """B4: `logs -f` over HTTP: pieces with their place, and the task at the end."""
    survey = Survey()
    async with serving(with_survey(runtime, survey)) as server:
        ada = await server.client()
        task = await parked(server, ada)
        async with ada.stream("GET", f"{task}/output", headers={"Accept": "text/event-stream"}) as response:
            seen: list[Frame] = []
            async for each in frames(response):
                seen.append(each)
                survey.here.open()
        assert "".join(each.data["text"] for each in seen[:-1]) == "measuring\ndone\n"
        assert (seen[-1].event, seen[-1].data["state"]) == ("end", "succeeded")


async def test_cancel_says_what_really_happened(runtime: Runtime) -> None:
    """B6, P6: cancelled, or what it came to."""
    survey = Survey()
    async with serving(with_survey(runtime, survey)) as server:
        ada = await server.client()
        task = await parked(server, ada)
        assert (await ada.post(f"{task}/cancel", json={})).json()["state"] == "canceled"
        assert (await ada.post(f"{task}/cancel", json={})).json()["state"] == "canceled"
        settled = await ada.post(f"{task}/settle", json={"verdict": "worked"})
        assert (settled.status_code, settled.json()["code"]) == (409, "conflict")
