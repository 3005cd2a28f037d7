"""Completing an operation over HTTP: by its token, by the server key, by its owner, and by nobody else (B9)."""

import asyncio
from typing import Any

import pytest
from pydantic_core import from_json

import outlast as public
from outlast import Client
from outlast.testing import call
from tests.support.logs.spans import recorded
from tests.support.network.server import Served, serving
from tests.support.turns.runtime import Runtime, scripted

KEY = "a server key of ours"
URL = "http://elsewhere.example.org"


class Built:
    """What the tool was given."""

    def __init__(self) -> None:
        self.operations: list[Any] = []

    async def build(self) -> str:
        async with public.external() as op:
            self.operations.append(op)
        return "ordered"

    def runtime(self, runtime: Runtime, **settings: Any) -> Any:
        model = scripted(call("build"), "Ordered.", "Told.")
        return runtime(model, tools=[self.build], public_url=URL, **settings)

    async def begin(self, server: Served) -> str:
        """The path at which it is completed, with its token."""
        session = await server.outlast.owned_by("ada").create()
        await (await session.send("Build.")).outcome()
        return self.operations[-1].url.removeprefix(URL)


async def test_whoever_has_the_token_completes_it_once(runtime: Runtime, capfd: pytest.CaptureFixture[str]) -> None:
    """B9: in the URL or as bearer; a repeat is 200 with `applied: false`; neither access log nor spans have a token."""
    built, spans = Built(), recorded()
    async with serving(built.runtime(runtime), log_requests=True) as server:
        path, anybody = await built.begin(server), server.with_headers({})
        operation = built.operations[0]
        first = await anybody.post(path, json={"success": True, "result": {"rooms": 4}})
        wanted = {"id": operation.task_id, "state": "succeeded", "applied": True}
        assert (first.status_code, first.json()) == (200, wanted)
        bearing = server.with_headers({"Authorization": f"Bearer {operation.token}"})
        again = await bearing.post(path.split("?")[0], json={"success": False, "error": "no"})
        assert (again.status_code, again.json()) == (200, {**wanted, "applied": False})
        task = await server.outlast.tasks_of("ada").get(operation.task_id)
        assert (task.state, task.result) == ("succeeded", {"rooms": 4})
        said = "".join(capfd.readouterr())
        assert "/v1/tasks/{task_id}/complete" in said
        assert operation.token not in said
        traced = [each.to_json() for each in spans.get_finished_spans()]
        assert any("token=REDACTED" in each for each in traced)
        assert operation.token not in "".join(traced)


async def test_two_at_the_same_instant_have_one_effect(runtime: Runtime) -> None:
    """B9: from two connections."""
    built = Built()
    async with serving(built.runtime(runtime)) as server:
        path = await built.begin(server)
        clients = [server.with_headers({}) for _ in range(2)]
        asked = (each.post(path, json={"success": True, "result": at}) for at, each in enumerate(clients))
        answers = [each.json() for each in await asyncio.gather(*asked)]
        assert sorted(each["applied"] for each in answers) == [False, True]
        task = await server.outlast.tasks_of("ada").get(built.operations[0].task_id)
        assert task.result == [each["applied"] for each in answers].index(True)


async def test_a_token_opens_its_own_task_only(runtime: Runtime) -> None:
    """B9, P7: with another task, an unknown one, or a wrong token the answer is the same."""
    built = Built()
    async with serving(built.runtime(runtime)) as server:
        path, anybody = await built.begin(server), server.with_headers({})
        task_id, token = built.operations[0].task_id, built.operations[0].token
        wrong = (
            path[:-3] + "xyz",
            f"/v1/tasks/tsk_unknown/complete?token={token}",
            f"/v1/tasks/{task_id}/complete?token=x",
        )
        answers = [await anybody.post(each, json={"success": True}) for each in wrong]
        assert {each.status_code for each in answers} == {401}
        assert len({each.content for each in answers}) == 1


async def test_the_server_key(runtime: Runtime) -> None:
    """B9: not configured 503, wrong 401, unknown 404; asked before anything is looked up."""
    built, done = Built(), {"success": False, "error": {"code": 7, "why": "no bricks"}}
    async with serving(built.runtime(runtime)) as server:
        path = (await built.begin(server)).split("?")[0]
        for headers in ({}, {"Authorization": f"Bearer {KEY}"}):
            refused = await server.with_headers(headers).post(path, json=done)
            assert (refused.status_code, refused.json()["code"]) == (503, "no_server_key")
    built.operations.clear()
    async with serving(built.runtime(runtime, server_key=KEY)) as server:
        right, wrong = (server.with_headers({"Authorization": f"Bearer {key}"}) for key in (KEY, f"{KEY}!"))
        path = (await built.begin(server)).split("?")[0]
        for each in (path, "/v1/tasks/tsk_unknown/complete"):
            assert (await wrong.post(each, json=done)).status_code == 401
        assert (await right.post("/v1/tasks/tsk_unknown/complete", json=done)).status_code == 404
        assert (await right.get("/v1/tasks")).status_code == 401, "it completes, and nothing else"
        assert (await right.post(path, json=done)).json()["applied"] is True
        task = await server.outlast.tasks_of("ada").get(built.operations[0].task_id)
        assert task.error is not None
        assert from_json(task.error["message"]) == {"code": 7, "why": "no bricks"}


async def test_the_owner_completes_it_with_his_own_key(runtime: Runtime) -> None:
    """B9, P7: another owner's key finds nothing."""
    built = Built()
    async with serving(built.runtime(runtime)) as server:
        path = (await built.begin(server)).split("?")[0]
        ada, ben = await server.client("ada"), await server.client("ben")
        foreign = await ben.post(path, json={"success": True})
        unknown = await ben.post("/v1/tasks/tsk_unknown/complete", json={"success": True})
        assert (foreign.status_code, foreign.content) == (404, unknown.content)
        _, key = await server.outlast.keys.make("ada", "client")
        async with Client(server.url, key) as client:
            assert (await client.tasks.complete(built.operations[0].task_id, result=[1])).applied
        assert (await ada.post(path, json={"success": True})).json()["applied"] is False


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b'{"success": 3}', b'{"success": true, "error": "x"}', b'{"success": false, "result": 1}'),
        b'{"success": true, "result": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    ],
)
async def test_hostile_bodies_are_refused_and_change_nothing(runtime: Runtime, body: bytes) -> None:
    """B9, G3: in words, and the completion that follows counts."""
    built = Built()
    async with serving(built.runtime(runtime)) as server:
        path, anybody = await built.begin(server), server.with_headers({"Content-Type": "application/json"})
        refused = await anybody.post(path, content=body)
        assert 400 <= refused.status_code < 500, refused.text
        assert (await anybody.post(path, json={"success": True, "result": "\x00\ud83d"[:1]})).json()["applied"]
