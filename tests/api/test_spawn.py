"""Tools that are set going over HTTP (B3, B5)."""

import asyncio

from pydantic_ai import Tool

from tests.support.network.server import serving
from tests.support.turns.runtime import Runtime, scripted


async def double(number: int) -> int:
    return 2 * number


async def test_a_tool_is_spawned_once_and_its_end_waited_for(runtime: Runtime) -> None:
    """B3, D2: 202 with the task; the same key gives the same task, another content of it 409."""
    async with serving(runtime(scripted("Heard."), tools=[Tool(double)])) as server:
        ada = await server.client()
        tasks = f"/v1/sessions/{(await ada.post('/v1/sessions', json={})).json()['id']}/tasks"
        body = {"tool": "double", "args": {"number": 21}, "title": "a sum", "wake": "silent"}
        made = [await ada.post(tasks, json=body, headers={"Idempotency-Key": "k"}) for _ in range(2)]
        assert [each.status_code for each in made] == [202, 202]
        assert made[0].json()["id"] == made[1].json()["id"]
        assert (made[0].json()["origin"], made[0].json()["title"]) == ("spawn", "a sum")
        other = await ada.post(tasks, json={**body, "args": {"number": 1}}, headers={"Idempotency-Key": "k"})
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_mismatch")
        ended = (await ada.get(f"/v1/tasks/{made[0].json()['id']}", params={"wait": 10})).json()
        assert (ended["state"], ended["result"]) == ("succeeded", 42)


async def test_what_is_refused_says_why(runtime: Runtime) -> None:
    """B3, G2: 422 for a tool or arguments that do not fit; another owner's session and none are the same 404."""
    async with serving(runtime(tools=[Tool(double)])) as server:
        ada, bob = await server.client(), await server.client("bob")
        session = f"/v1/sessions/{(await ada.post('/v1/sessions', json={})).json()['id']}"
        wrong = await ada.post(f"{session}/tasks", json={"tool": "duoble", "args": {"number": 1}})
        assert (wrong.status_code, "double" in wrong.json()["detail"]) == (422, True)
        unfit = await ada.post(f"{session}/tasks", json={"tool": "double", "args": {"number": "x"}})
        assert (unfit.status_code, unfit.json()["code"]) == (422, "invalid_input")
        body = {"tool": "double", "args": {"number": 1}}
        strange = await bob.post(f"{session}/tasks", json=body)
        none = await bob.post("/v1/sessions/ses_none/tasks", json=body)
        assert (strange.status_code, strange.json()) == (none.status_code, none.json())
        assert strange.status_code == 404
        denied = await ada.patch(session, json={"permissions": {"deny": ["double"]}})
        assert denied.status_code == 200
        assert (await ada.post(f"{session}/tasks", json=body)).status_code == 403


async def test_too_many_open_tasks_are_listed(runtime: Runtime) -> None:
    """B5: 429 with the open ones; those that wait show their place."""
    may_end = asyncio.Event()

    async def work() -> None:
        await may_end.wait()

    limited = runtime(tools=[Tool(work)], max_open_tasks_per_session=2, max_spawned_per_session=1)
    async with serving(limited) as server:
        ada = await server.client()
        tasks = f"/v1/sessions/{(await ada.post('/v1/sessions', json={})).json()['id']}/tasks"
        body = {"tool": "work", "wake": "silent"}
        made = [(await ada.post(tasks, json=body)).json() for _ in range(2)]
        assert [each["place"] for each in made] == [None, 1]
        full = await ada.post(tasks, json=body)
        assert (full.status_code, full.json()["code"]) == (429, "too_many_tasks")
        assert [each["task_id"] for each in full.json()["open"]] == [each["id"] for each in made]
        may_end.set()
        for each in made:
            assert (await ada.get(f"/v1/tasks/{each['id']}", params={"wait": 10})).json()["state"] == "succeeded"
