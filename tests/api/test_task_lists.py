"""Tasks over all sessions: filtered, in pages, counted; and their output from its end, as a file, and searched."""

from typing import Any

from pydantic_ai import Tool

import outlast as public
from outlast import hints
from outlast.testing import call
from tests.support.network.server import serving
from tests.support.turns.background import task_that
from tests.support.turns.runtime import Runtime, scripted

LINES = "".join(f"line {number} of the River\n" for number in range(20_000))


def survey() -> str:
    public.output(LINES)
    return "done"


def pay(amount: int) -> str:
    return f"paid {amount}"


def tools() -> list[Tool[Any]]:
    return [Tool(survey), Tool(pay, metadata=hints(approve=True))]


async def test_tasks_are_found_by_tool_and_need_in_any_order(runtime: Runtime) -> None:
    """K2, B7: over all sessions, in pages; what waits for somebody is counted, another owner's is not."""
    steps = [call("pay", amount=1), "It waits.", call("pay", amount=2), "It waits."]
    async with serving(runtime(scripted(*steps), tools=tools())) as server:
        ada, ben = await server.client(), await server.client("ben")
        mine = server.outlast.owned_by("ada")
        await (await (await mine.create()).send("Pay")).outcome()
        session = await mine.create()
        await (await session.send("Pay")).outcome()
        spawned = await session.spawn("survey", wake="silent")
        await task_that(session, lambda each: each.id == spawned.id and each.is_over)

        async def listed(**params: Any) -> list[str]:
            return [each["id"] for each in (await ada.get("/v1/tasks", params=params)).json()["items"]]

        everything = await listed()
        assert (len(everything), everything[0]) == (3, spawned.id)
        assert await listed(order="oldest") == everything[::-1]
        assert await listed(tool="survey") == [spawned.id]
        assert await listed(needing=True) == everything[1:]
        assert await listed(needing=False) == [spawned.id]
        first = (await ada.get("/v1/tasks", params={"order": "oldest", "limit": 2})).json()
        assert await listed(order="oldest", cursor=first["next"]) == [spawned.id]
        assert (await ada.get("/v1/requests/count")).json() == {"count": 2}
        assert (await ben.get("/v1/requests/count")).json() == {"count": 0}
        for wrong in ({"order": "x"}, {"needing": "perhaps"}, {"tool": "x" * 201}):
            assert (await ada.get("/v1/tasks", params=wrong)).status_code == 422
        assert (await ada.get("/v1/tasks", params={"tool": "a\x00b"})).status_code in (200, 422, 400)


async def test_an_output_is_read_from_its_end_saved_and_searched(runtime: Runtime) -> None:
    """B5, K2: `tail`, a text file, and lines with an offset at which they are read; bounded."""
    async with serving(runtime(scripted("Hello."), tools=tools())) as server:
        ada = await server.client()
        session = await server.outlast.owned_by("ada").create()
        task = await session.spawn("survey", wake="silent")
        await task_that(session, lambda each: each.is_over)
        path = f"/v1/tasks/{task.id}/output"
        end = (await ada.get(path, params={"tail": 26})).json()
        assert (end["text"], end["next_offset"]) == (LINES[-26:], len(LINES))
        saved = await ada.get(f"{path}/text")
        assert saved.text == LINES
        assert saved.headers["content-disposition"] == f'attachment; filename="{task.id}.txt"'
        [found] = (await ada.get(f"{path}/search", params={"text": "LINE 12345 OF"})).json()["items"]
        assert found["line"] == "line 12345 of the River"
        there = (await ada.get(path, params={"after": found["offset"], "limit": 10})).json()
        assert there["text"] == "line 12345"
        many = await ada.get(f"{path}/search", params={"text": "river", "limit": 500})
        assert len(many.json()["items"]) == 500
        assert (await ada.get(f"{path}/search", params={"text": "(.*)+$"})).json()["items"] == []
        assert (await ada.get(f"{path}/search", params={"text": ""})).status_code == 422
