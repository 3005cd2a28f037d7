"""What tasks ask people for, over HTTP, with the client and with the command (A13, B7, B8, P7)."""

import asyncio
from typing import Any

from pydantic_ai import Tool
from typer.testing import CliRunner

from outlast import Client, hints
from outlast import ask as outlast_ask
from outlast.cli.main import app
from outlast.runtime import LOCAL_OWNER
from outlast.testing import ScriptedModel, call
from tests.support.network.server import Served, serving
from tests.support.turns.runtime import Runtime

PAID: list[int] = []


def pay(amount: int) -> str:
    PAID.append(amount)
    return f"paid {amount}"


def _app(runtime: Runtime, *amounts: int) -> Any:
    PAID.clear()
    model = ScriptedModel([*(call("pay", amount=each) for each in amounts), "They wait.", *["I see."] * 5])
    return runtime(model, tools=[Tool(pay, metadata=hints(approve=True))])


async def _asked(server: Served, owner: str = LOCAL_OWNER) -> tuple[Any, list[dict[str, Any]]]:
    client = await server.client(owner)
    made = (await client.post("/v1/sessions", json={})).json()
    sent = await client.post(f"/v1/sessions/{made['id']}/messages", json={"text": "pay"})
    assert sent.is_success, sent.text
    await client.get(f"/v1/sessions/{made['id']}/result", params={"wait": 20})
    found = (await client.get("/v1/requests")).json()["items"]
    assert (await client.get(f"/v1/sessions/{made['id']}/requests")).json()["items"] == found
    return client, found


async def test_an_approval_is_decided_over_http(runtime: Runtime) -> None:
    """A13, B7: listed over all sessions, decided once, and told who."""
    async with serving(_app(runtime, 5)) as server:
        client, [task] = await _asked(server)
        assert (task["request"]["kind"], task["request"]["args"]) == ("approval", {"amount": 5})
        wrong = await client.post(f"/v1/tasks/{task['id']}/approve", json={"args": {"amount": "much"}})
        assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_input")
        done = await client.post(f"/v1/tasks/{task['id']}/approve", json={"args": {"amount": 4}, "by": "Ada"})
        assert done.status_code == 200, done.text
        assert done.json()["request"]["closed"]["by"].startswith("Ada (key ")
        again = await client.post(f"/v1/tasks/{task['id']}/refuse", json={"reason": "no"})
        assert (again.status_code, "Ada" in again.text) == (409, True)
        ended = (await client.get(f"/v1/tasks/{task['id']}", params={"wait": 20})).json()
        assert (ended["result"], PAID) == ("paid 4", [4])
        assert (await client.get("/v1/requests")).json()["items"] == []


async def test_what_is_asked_of_others_is_not_there(runtime: Runtime) -> None:
    """P7: a stranger sees no request, and decides none."""
    async with serving(_app(runtime, 5)) as server:
        _, [task] = await _asked(server)
        ben = await server.client("ben")
        assert (await ben.get("/v1/requests")).json()["items"] == []
        for verb, body in (("approve", {}), ("refuse", {}), ("reply", {"value": "x"})):
            unknown = await ben.post(f"/v1/tasks/tsk_unknown/{verb}", json=body)
            foreign = await ben.post(f"/v1/tasks/{task['id']}/{verb}", json=body)
            assert (foreign.status_code, unknown.status_code) == (404, 404)


async def test_a_key_that_may_only_propose_decides_nothing(runtime: Runtime) -> None:
    """A13: only a person, or a key with that scope; nor does a page of the AI SDK with such a key."""
    outlast = _app(runtime, 5)
    async with serving(outlast) as server:
        _, [task] = await _asked(server)
        client = await server.client(LOCAL_OWNER, scope="propose")
        for verb in ("approve", "refuse"):
            answer = await client.post(f"/v1/tasks/{task['id']}/{verb}", json={})
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        part = {"type": "tool-pay", "state": "approval-responded", "approval": {"id": task["id"], "approved": True}}
        page = {"id": task["session_id"], "messages": [{"id": "m1", "role": "assistant", "parts": [part]}]}
        answer = await client.post("/api/chat", json=page)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        assert (await server.outlast.tasks.get(task["id"])).state == "awaiting_input"
        assert PAID == []


async def test_the_client_and_the_command_decide_several(runtime: Runtime) -> None:
    """A13: `outlast approvals`, `outlast approve TASK...`, `outlast refuse`; who comes too late is told."""
    outlast = _app(runtime, 1, 2, 3)
    async with serving(outlast) as server:
        await _asked(server)
        _, key = await outlast.keys.make(LOCAL_OWNER, "Ada")
        async with Client(server.url, key) as client:
            third, second, first = (await client.tasks.requests()).items

            async def run(*args: str) -> Any:
                return await asyncio.to_thread(CliRunner().invoke, app, [*args, "--url", server.url, "--token", key])

            listed = await run("approvals")
            assert (listed.exit_code, first.id in listed.output, "pay" in listed.output) == (0, True, True)
            both = await run("approve", first.id, second.id)
            assert both.exit_code == 0, both.output
            refused = await run("refuse", third.id, first.id, "--reason", "too dear")
            assert (refused.exit_code, "already approved" in refused.output) == (1, True)
            for each in (first, second):
                assert (await client.tasks.wait(each.id, seconds=20)).state == "succeeded"
            assert sorted(PAID) == [1, 2]
            assert (await client.tasks.get(third.id)).error == {
                "kind": "rejected",
                "message": "Ada refused it, and it was not run. Reason: too dear",
            }


async def test_a_question_is_answered_over_http_with_the_client_and_the_command(runtime: Runtime) -> None:
    """B8: what does not fit is refused, the first valid answer wins, and the tool goes on with it."""

    async def paint(wall: str) -> str:
        return f"{wall}: {await outlast_ask('Which colour?', {'type': 'string', 'enum': ['red', 'blue']})}"

    steps = [*(call("paint", wall=each) for each in ("left", "right", "back")), "They ask.", *["I see."] * 5]
    outlast = runtime(ScriptedModel(steps), tools=[paint])
    async with serving(outlast) as server:
        client, found = await _asked(server)
        first, second, third = sorted(found, key=lambda each: each["created_at"])
        path = f"/v1/tasks/{first['id']}/reply"
        assert (await client.post(path, json={"value": "green"})).status_code == 422
        done = await client.post(path, json={"value": "red", "by": "Ada"})
        assert done.status_code == 200, done.text
        late = await client.post(path, json={"value": "blue"})
        assert (late.status_code, "Ada" in late.text) == (409, True)
        _, key = await outlast.keys.make(LOCAL_OWNER, "Ada")
        async with Client(server.url, key) as library:
            await library.tasks.reply(second["id"], "blue")
        command = ["reply", third["id"], "red", "--url", server.url, "--token", key]
        answered = await asyncio.to_thread(CliRunner().invoke, app, command)
        assert answered.exit_code == 0, answered.output
        for task, result in ((first, "left: red"), (second, "right: blue"), (third, "back: red")):
            ended = (await client.get(f"/v1/tasks/{task['id']}", params={"wait": 20})).json()
            assert ended["result"] == result


async def test_a_session_is_spared_and_asked_again(runtime: Runtime) -> None:
    """A13: `outlast approve --rule`, the rule in the session's answer, and `outlast ask-again`."""
    outlast = _app(runtime, 1)
    async with serving(outlast) as server:
        client, [task] = await _asked(server)
        _, key = await outlast.keys.make(LOCAL_OWNER, "Ada")

        async def run(*args: str) -> Any:
            return await asyncio.to_thread(CliRunner().invoke, app, [*args, "--url", server.url, "--token", key])

        wrong = await client.post(f"/v1/tasks/{task['id']}/approve", json={"always": "pay("})
        assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_input")
        done = await run("approve", task["id"], "--rule", "pay(amount<=9)")
        assert done.exit_code == 0, done.output
        [rule] = (await client.get(f"/v1/sessions/{task['session_id']}")).json()["permissions"]["always"]
        assert rule["rule"] == "pay(amount<=9)"
        unknown = await client.delete(f"/v1/sessions/{task['session_id']}/always/rul_unknown")
        assert unknown.status_code == 404
        again = await run("ask-again", task["session_id"])
        assert (again.exit_code, "pay(amount<=9)" in again.output) == (0, True)
        assert (await client.get(f"/v1/sessions/{task['session_id']}")).json()["permissions"]["always"] == []
