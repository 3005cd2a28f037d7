"""Not yours is not there: every route, with another owner's ids, without credentials, with too little (P7, G1, G2)."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from cryptography.fernet import Fernet

from outlast import ids
from tests.support.apps.obedient import obedient, survey_tool
from tests.support.moments.checkpoint import Checkpoint
from tests.support.network.server import Served, serving
from tests.support.turns.runtime import Runtime

OPEN = {"healthz", "readyz", "login"}
"""What anybody may ask: whether the server lives, and to be let in with a token."""


@dataclass
class World:
    """A server with a session of Ada's, and Ben, who owns nothing."""

    server: Served
    ada: httpx2.AsyncClient
    ben: httpx2.AsyncClient
    admin: httpx2.AsyncClient
    ids: dict[str, str] = field(default_factory=dict[str, str])

    async def say(self, words: str, **more: Any) -> dict[str, Any]:
        path = f"/v1/sessions/{self.ids['session_id']}/messages"
        return (await self.ada.post(path, json={"text": words, **more})).json()

    async def result(self) -> dict[str, Any]:
        path = f"/v1/sessions/{self.ids['session_id']}/result"
        return (await self.ada.get(path, params={"wait": 10})).json()


async def a_session(world: World) -> None:
    """One turn that ended."""
    world.ids["session_id"] = (await world.ada.post("/v1/sessions", json={})).json()["id"]
    await world.say("hello")
    assert (await world.result())["state"] == "completed"


async def a_failed_turn(world: World) -> None:
    await a_session(world)
    await world.say("break")
    assert (await world.result())["state"] == "failed"


async def a_waiting_message(world: World) -> None:
    await a_session(world)
    await world.say("wait")
    world.ids["input_id"] = (await world.say("later", when_busy="queue"))["input_id"]


async def a_task(world: World) -> None:
    await a_session(world)
    await world.say("survey")
    await world.result()
    world.ids["task_id"] = (await world.ada.get("/v1/tasks")).json()["items"][0]["id"]


async def a_file(world: World) -> None:
    await a_session(world)
    data = {"name": "map.txt", "media_type": "text/plain", "data": "dGhlIEVsYmU="}
    await world.say("hi", files=[data])
    told = await world.ada.get(f"/v1/sessions/{world.ids['session_id']}/events", params={"types": "input.accepted"})
    world.ids["file_id"] = told.json()["items"][-1]["data"]["files"][0]["id"]


async def a_chat(world: World) -> None:
    await a_waiting_message(world)
    world.ids["chat_id"] = world.ids["session_id"]


async def a_key(world: World) -> None:
    made = await world.admin.post("/v1/keys", json={"owner_id": "ada", "name": "spare"})
    world.ids["key_id"] = made.json()["id"]


async def a_connection(world: World) -> None:
    """Of Ada's; what others may ask for is another one, as theirs of this name are not hers."""
    await world.ada.put("/v1/connections/github", json={"value": "ghp_4711-secret"})
    world.ids["provider"] = "github"


async def a_webhook(world: World) -> None:
    made = await world.ada.post("/v1/webhooks", json={"url": "https://example.invalid/"})
    world.ids["webhook_id"] = made.json()["id"]
    tried = await world.ada.post(f"/v1/webhooks/{world.ids['webhook_id']}/test")
    world.ids["delivery_id"] = tried.json()["id"]


async def a_call(world: World) -> None:
    await a_session(world)
    world.ids["call_id"] = "call_1"


async def a_rule(world: World) -> None:
    await a_session(world)
    world.ids["rule_id"] = UNKNOWN["rule_id"]


async def an_upload(world: World) -> None:
    await a_session(world)
    path = f"/v1/sessions/{world.ids['session_id']}/files"
    made = await world.ada.post(path, params={"name": "notes.txt"}, content=b"mine")
    world.ids["file_id"] = made.json()["id"]


async def a_schedule(world: World) -> None:
    await a_session(world)
    body = {"session_id": world.ids["session_id"], "text": "look", "cron": "0 0 1 1 *"}
    world.ids["schedule_id"] = (await world.ada.post("/v1/schedules", json=body)).json()["id"]


async def a_block(world: World) -> None:
    """The text of the answer, whole: a view that cuts it says where it is."""
    await a_session(world)
    view = await world.ada.get(f"/v1/sessions/{world.ids['session_id']}/view")
    world.ids |= {"turn_id": view.json()["turns"][-1]["id"], "number": "0"}


@dataclass(frozen=True)
class Use:
    """How a route is called so that its owner gets through.

    `status`: the route's own answer where that is not a 2xx; it is never what a stranger gets.
    """

    body: Any = None
    before: Callable[[World], Awaitable[None]] = a_session
    params: dict[str, str] = field(default_factory=dict[str, str])
    named: str | None = None
    """What the body names beside its own content."""
    status: int | None = None
    stranger: int = 404
    is_admin: bool = False
    is_own: bool = False
    """What it names is the caller's own, whoever asks: tests of that noun show that another's stays as it is."""


USES: dict[str, Use] = {
    "make_link": Use(),
    "logout": Use(),
    "create_session": Use({}),
    "list_sessions": Use(),
    "import_session": Use({"format": "outlast.session/1", "messages": []}),
    "get_session": Use(),
    "fork_session": Use({}),
    "export_session": Use(),
    "change_session": Use({"title": "Oslo"}),
    "delete_session": Use(),
    "send_message": Use({"text": "hi"}),
    "list_messages": Use(),
    "list_inbox": Use(),
    "get_input": Use(before=a_waiting_message),
    "edit_input": Use({"text": "better"}, before=a_waiting_message),
    "remove_input": Use(before=a_waiting_message),
    "get_result": Use(),
    "list_turns": Use(),
    "stop": Use({}),
    "resume": Use(),
    "retry": Use(before=a_failed_turn),
    "regenerate": Use(),
    "settle_call": Use({"verdict": "worked"}, before=a_call, status=404),
    "session_events": Use(),
    "owner_events": Use(params={"sessions": "{session_id}:1"}),
    "list_tasks": Use(),
    "get_task": Use(before=a_task),
    "cancel_task": Use({}, before=a_task),
    "spawn_task": Use({"tool": "survey", "args": {}}),
    "reply_to_task": Use({"value": "yes"}, before=a_task, status=409),
    "approve_task": Use({}, before=a_task, status=409),
    "refuse_task": Use({}, before=a_task, status=409),
    "list_requests": Use(),
    "count_requests": Use(),
    "download_output": Use(before=a_task),
    "search_output": Use(before=a_task, params={"text": "x"}),
    "list_session_requests": Use(),
    "complete_task": Use({"success": True}, before=a_task, status=409),
    "settle_task": Use({"verdict": "worked"}, before=a_task, status=409),
    "task_output": Use(before=a_task),
    "get_view": Use(),
    "get_block": Use(before=a_block),
    "list_schedules": Use(before=a_schedule),
    "create_schedule": Use({"text": "look", "cron": "0 0 1 1 *"}, named="session_id"),
    "preview_schedule": Use({"cron": "0 0 1 1 *"}),
    "get_schedule": Use(before=a_schedule),
    "edit_schedule": Use({"title": "New Year"}, before=a_schedule),
    "delete_schedule": Use(before=a_schedule),
    "pause_schedule": Use(before=a_schedule),
    "resume_schedule": Use(before=a_schedule),
    "trigger_schedule": Use(before=a_schedule),
    "list_fires": Use(before=a_schedule),
    "chat": Use({"id": "trip", "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]}),
    "resume_chat": Use(before=a_chat, stranger=204),
    "stop_chat": Use(before=a_chat),
    "list_chat_messages": Use(before=a_chat, stranger=200),
    "list_connections": Use(before=a_connection),
    "set_connection": Use({"value": "ghp_4711-secret"}, before=a_connection, is_own=True),
    "get_connection": Use(before=a_connection),
    "remove_connection": Use(before=a_connection),
    "rekey_connections": Use(is_admin=True),
    "list_agents": Use(),
    "list_tools": Use(),
    "get_me": Use(),
    "get_file": Use(before=a_file),
    "upload_file": Use({"any": "bytes"}, params={"name": "notes.txt"}),
    "list_files": Use(),
    "delete_file": Use(before=an_upload),
    "get_usage": Use(),
    "metrics": Use(is_admin=True),
    "get_pause": Use(is_admin=True),
    "withdraw_always_rule": Use(before=a_rule, status=404),
    "pause": Use(is_admin=True),
    "unpause": Use(is_admin=True),
    "make_key": Use({"owner_id": "ben", "name": "one more"}, is_admin=True),
    "list_keys": Use(is_admin=True),
    "revoke_key": Use(before=a_key, is_admin=True),
    "list_webhooks": Use(before=a_webhook),
    "make_webhook": Use({"url": "https://example.invalid/"}),
    "get_webhook": Use(before=a_webhook),
    "change_webhook": Use({"is_active": True}, before=a_webhook),
    "remove_webhook": Use(before=a_webhook),
    "rotate_webhook": Use(before=a_webhook),
    "test_webhook": Use(before=a_webhook),
    "list_deliveries": Use(before=a_webhook),
    "get_delivery": Use(before=a_webhook),
    "redeliver": Use(before=a_webhook),
}
UNKNOWN = {
    "session_id": str(ids.session_id()),
    "turn_id": str(ids.turn_id()),
    "number": "0",
    "input_id": str(ids.input_id()),
    "schedule_id": str(ids.schedule_id()),
    "task_id": str(ids.task_id()),
    "call_id": "call_1",
    "rule_id": str(ids.rule_id()),
    "key_id": str(ids.key_id()),
    "chat_id": str(ids.session_id()),
    "provider": "gitlab",
    "file_id": f"fil_{'0' * 26}_{'0' * 64}",
    "webhook_id": "whk_00000000000000000000000000",
    "delivery_id": "msg_00000000000000000000000000_1",
}


@asynccontextmanager
async def a_world(runtime: Runtime) -> AsyncGenerator[World]:
    here = Checkpoint()
    keys = (Fernet.generate_key().decode(),)
    async with serving(
        runtime(obedient(here), tools=[survey_tool(here)], encryption_keys=keys, server_key="k" * 16)
    ) as server:
        ada, ben = await server.client("ada"), await server.client("ben")
        yield World(server, ada, ben, await server.client("root", role="admin"))
        here.open()


async def operations(server: Served) -> dict[str, tuple[str, str]]:
    """Method and path by name, from the OpenAPI that the server publishes."""
    async with httpx2.AsyncClient(base_url=server.url) as client:
        paths = (await client.get("/openapi.json")).json()["paths"]
    return {each["operationId"]: (method.upper(), path) for path, by in paths.items() for method, each in by.items()}


async def test_every_route_is_known_to_these_tests(runtime: Runtime) -> None:
    """G2: whoever adds a route says here how its owner uses it."""
    async with a_world(runtime) as world:
        assert set(await operations(world.server)) == set(USES) | OPEN


@pytest.mark.parametrize("name", USES)
async def test_only_its_owner_sees_it(runtime: Runtime, name: str) -> None:
    """P7, G2: the owner gets through with the id; another owner gets, byte for byte, what an unknown id gets."""
    use = USES[name]
    async with a_world(runtime) as world:
        method, path = (await operations(world.server))[name]
        await use.before(world)

        async def ask(client: httpx2.AsyncClient, known: dict[str, str]) -> httpx2.Response:
            params = {key: value.format(**known) for key, value in use.params.items()}
            body = use.body if use.named is None else use.body | {use.named: known[use.named]}
            async with client.stream(method, path.format(**known), json=body, params=params) as answer:
                is_stream = answer.headers.get("content-type", "").startswith("text/event-stream")
                if not is_stream:
                    await answer.aread()
                return answer

        own_client, stranger = (world.admin, world.ada) if use.is_admin else (world.ada, world.ben)
        unknown = await ask(stranger, UNKNOWN)
        names_something = ("{" in path or bool(use.params) or use.named is not None) and not use.is_own
        if names_something:
            assert unknown.status_code == (403 if use.is_admin else use.stranger)
            before = await ask(stranger, world.ids)
            assert (before.status_code, before.content) == (unknown.status_code, unknown.content)
        own = await ask(own_client, world.ids)
        if use.status is None:
            assert own.is_success, own.status_code
        else:
            assert own.status_code == use.status
        if names_something:
            after = await ask(stranger, world.ids)
            assert (after.status_code, after.content) == (unknown.status_code, unknown.content)
            assert dict(after.headers) | {"date": ""} == dict(unknown.headers) | {"date": ""}


async def test_nobody_gets_in_without_credentials(runtime: Runtime) -> None:
    """G1: every route, without a key and with a wrong one: 401, and nothing else is told."""
    async with a_world(runtime) as world:
        wrong = f"olk_{'0' * 26}_{'0' * 64}"
        for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": f"Bearer {wrong}"}):
            stranger = world.server.with_headers(headers)
            for name, (method, path) in (await operations(world.server)).items():
                if name not in OPEN:
                    answer = await stranger.request(method, path.format(**UNKNOWN), json=USES[name].body)
                    assert (name, answer.status_code, answer.json()["code"]) == (name, 401, "unauthenticated")


async def test_a_key_that_may_only_read_changes_nothing(runtime: Runtime) -> None:
    """G1: scopes: 403 on every route that changes something, whatever the id."""
    async with a_world(runtime) as world:
        reader = await world.server.client("ada", scope="read")
        for name, (method, path) in (await operations(world.server)).items():
            if name not in OPEN and method != "GET":
                answer = await reader.request(method, path.format(**UNKNOWN), json=USES[name].body)
                assert (name, answer.status_code, answer.json()["code"]) == (name, 403, "forbidden")


async def test_another_owner_lists_nothing(runtime: Runtime) -> None:
    """P7: lists and feeds are an owner's own."""
    async with a_world(runtime) as world:
        await a_task(world)
        for path in ("/v1/sessions", "/v1/tasks", "/v1/events"):
            assert (await world.ada.get(path)).json()["items"]
            assert (await world.ben.get(path)).json()["items"] == []
        foreign = await world.ben.get("/v1/tasks", params={"session": world.ids["session_id"]})
        unknown = await world.ben.get("/v1/tasks", params={"session": UNKNOWN["session_id"]})
        assert foreign.content == unknown.content


async def test_a_revoked_key_opens_nothing(runtime: Runtime) -> None:
    """G1: revocable at once."""
    async with a_world(runtime) as world:
        made = (await world.admin.post("/v1/keys", json={"owner_id": "ada", "name": "spare"})).json()
        spare = world.server.with_headers({"Authorization": f"Bearer {made['key']}"})
        assert (await spare.get("/v1/sessions")).status_code == 200
        assert (await world.admin.delete(f"/v1/keys/{made['id']}")).status_code == 200
        assert (await spare.get("/v1/sessions")).status_code == 401
        assert made["key"] not in (await world.admin.get("/v1/keys")).text
