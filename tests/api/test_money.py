"""Money: stored once, shown to admins and on one machine, left out of all that a tenant gets (H3)."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from pydantic_ai import Agent, Tool
from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded, UserError
from pydantic_ai.usage import RequestUsage

from outlast import Client, cost, hints
from outlast.testing import call, reply
from tests.support.models.prices import PricedModel
from tests.support.moments.checkpoint import Checkpoint
from tests.support.network.server import Served, serving
from tests.support.turns.runtime import Runtime, scripted

DOLLARS = 54_321.987654
LIMIT = 9_876_543_210_123
SPENT = ("54321.987654", "54321987654", "108643975308", "162965962962", "9876543210123")
"""Too long to stand in an id or an instant by chance."""
EVENTS = {"Accept": "text/event-stream"}
NO_STREAM = {"Accept": "application/json"}


@pytest.fixture
def runtime(database_url: str, tmp_path: Path) -> Runtime:
    return Runtime(database_url, files=str(tmp_path / "files"))


@asynccontextmanager
async def spending(
    runtime: Runtime, owner: str, role: Any, *, told_in: str = "details"
) -> AsyncGenerator[tuple[Served, httpx2.AsyncClient, str]]:
    """A server on which an owner has spent something, a client with its key, and that key.

    The price stands in the details of a response that its provider gives, or in its usage as pydantic-ai has it.
    """

    async def survey() -> str:
        return "12 metres"

    steps: list[Any] = [call("survey"), "It is 12 metres.", "Hello.", "Again."]
    if told_in == "usage":
        steps = [reply(each, usage=priced()) for each in steps]
    model = PricedModel(steps, dollars=DOLLARS if told_in == "details" else None)
    async with serving(runtime(model, tools=[survey], daily_cost_limit=LIMIT)) as server:
        _, key = await server.outlast.keys.make(owner, "test", role=role)
        yield server, server.with_headers({"Authorization": f"Bearer {key}"}), key


def priced() -> RequestUsage:
    cost = Decimal(str(DOLLARS))
    return RequestUsage(input_tokens=5, output_tokens=5, cost=cost, details={"cost_in_usd_ticks": 54321987654})


async def everything(server: Served, client: httpx2.AsyncClient, key: str) -> dict[str, str]:
    """All that can be read of a session with two calls of the model, by where it was read."""
    session = (await client.post("/v1/sessions", json={"external_id": "chat"})).json()["id"]
    found = {"message": await streamed(client, "POST", f"/v1/sessions/{session}/messages", {"text": "Go."})}
    said = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hi."}]}
    found["chat"] = await streamed(client, "POST", "/api/chat", {"id": "chat", "messages": [said]})
    turn = (await client.get(f"/v1/sessions/{session}/result")).json()["turn_id"]
    found["turn"] = (await client.get(f"/v1/sessions/{session}/result?turn_id={turn}")).text
    names = Names(session_id=session, chat_id="chat", turn_id=turn, provider="github")
    for path in reading_routes(server.app):
        answer = await client.get(path.format_map(names), headers={"Accept": "application/json"})
        assert answer.status_code < 500
        if answer.status_code != 403:
            found[path] = answer.text
    for path in (f"/v1/sessions/{session}/events", f"/v1/events?sessions={session}", "/v1/events"):
        found[f"stream of {path}"] = await begun(client, path)
    async with Client(server.url, key) as program:
        same = await program.sessions.get(session)
        found["Client"] = repr([await same.result(), await same.export(), await program.usage()])
    return found


class Names(dict[str, str]):
    """What stands in the addresses; for all that is not given, an id that there is not."""

    def __missing__(self, name: str) -> str:
        return f"{name}_0"


def reading_routes(app: FastAPI) -> list[str]:
    return [path for path, methods in app.openapi()["paths"].items() if "get" in methods]


async def streamed(client: httpx2.AsyncClient, method: str, path: str, body: Any) -> str:
    async with client.stream(method, path, json=body, headers=EVENTS) as response:
        return "".join([each async for each in response.aiter_text()])


async def begun(client: httpx2.AsyncClient, path: str) -> str:
    """What a stream tells up to the end of the second turn."""
    lines: list[str] = []
    async with client.stream("GET", path, headers=EVENTS) as response:
        async for line in response.aiter_lines():
            lines.append(line)
            if sum("turn.completed" in each for each in lines) == 2:
                break
    return "\n".join(lines)


def money_in(text: str) -> list[str]:
    plain = text.replace("_", "")
    return [each for each in SPENT if each in plain] + [
        line for line in costs(text) if line not in ("null", "None", '"unknown"')
    ]


def costs(text: str) -> list[str]:
    """The values of everything that is named for what it costs."""
    for quote in ('"', "'"):
        text = text.replace(f"cost_microdollars{quote}:", "cost_microdollars=").replace(f"cost{quote}:", "cost=")
    parts = text.replace("\\", "").split("cost_microdollars=")[1:] + text.split("cost=")[1:]
    return [each.lstrip().split(",")[0].split("}")[0].split(")")[0] for each in parts]


@pytest.mark.parametrize("told_in", ["details", "usage"])
async def test_a_tenant_finds_no_money_anywhere(runtime: Runtime, told_in: str) -> None:
    """H3: not in results, events, streams, messages, exports, usage, other protocols, or what the client gives."""
    async with spending(runtime, "ada", "user", told_in=told_in) as (server, client, key):
        found = await everything(server, client, key)
        session = await server.outlast.owned_by("ada", with_money=False).create(external_id="chat")
        found["history"] = repr(await session.history())
    assert {where: money_in(text) for where, text in found.items() if money_in(text)} == {}
    assert "12 metres" in found["chat"] + found["message"]


@pytest.mark.parametrize(("owner", "role"), [("root", "admin"), ("local", "user")])
async def test_an_admin_and_whoever_is_alone_find_it(runtime: Runtime, owner: str, role: str) -> None:
    """H3: it is stored, and told to whoever may know."""
    async with spending(runtime, owner, role) as (server, client, key):
        found = await everything(server, client, key)
    with_money = {where for where, text in found.items() if money_in(text)}
    assert with_money >= {
        *("message", "chat", "turn", "Client", "stream of /v1/events", "/v1/usage"),
        *("/v1/sessions/{session_id}/result", "/v1/sessions/{session_id}/events", "/v1/sessions/{session_id}/export"),
        *("/v1/sessions/{session_id}/messages", "/v1/events", "/api/chat/{chat_id}/messages"),
    }


LIMIT_OF_COST = "Exceeded the `cost_limit` of 9876543210123 (`usage.cost`=Decimal('54321.987654'))"


@pytest.mark.parametrize(
    "error",
    [
        UsageLimitExceeded(LIMIT_OF_COST),
        UnexpectedModelBehavior(LIMIT_OF_COST.replace("cost_limit` of 9876543210123", "limit`")),
        UserError("This account has $54321.987654 left, and the request needs 108643975308 credits."),
    ],
)
async def test_why_a_turn_failed_names_no_amount(runtime: Runtime, error: Exception) -> None:
    """H3: neither in results, events, the feed, exports nor chats, though an exception says it."""

    def instructions() -> str:
        raise error

    agent = Agent(PricedModel(["Hello."], dollars=None), instructions=instructions, name="agent")
    async with serving(runtime(agent=agent)) as server:
        client = await server.client("ada")
        session = (await client.post("/v1/sessions", json={})).json()["id"]
        await client.post(f"/v1/sessions/{session}/messages", json={"text": "Go."})
        result = (await client.get(f"/v1/sessions/{session}/result", params={"wait": 20})).json()
        assert result["state"] == "failed"
        names = Names(session_id=session, chat_id=session, turn_id=result["turn_id"], provider="github")
        for path in reading_routes(server.app):
            answer = await client.get(path.format_map(names), headers={"Accept": "application/json"})
            assert [each for each in SPENT if each in answer.text] == [], path


async def test_what_tools_cost_is_left_out_too(runtime: Runtime) -> None:
    """H3, H4: of a call within its budget, and of one that went on as a task; a tenant finds it nowhere."""

    async def pay() -> str:
        cost(54_321_987_654)
        return "paid"

    async def dig() -> str:
        cost(54_321_987_654)
        await here()
        return "dug"

    here = Checkpoint()
    tools = [Tool(pay), Tool(dig, metadata=hints(budget=0.02))]
    model = scripted([call("pay"), call("dig")], "It goes on.", "It is dug.")
    async with serving(runtime(model, tools=tools)) as server:
        _, key = await server.outlast.keys.make("ada", "test")
        client = server.with_headers({"Authorization": f"Bearer {key}"})
        session = (await client.post("/v1/sessions", json={"external_id": "chat"})).json()["id"]
        await client.post(f"/v1/sessions/{session}/messages", json={"text": "Go."})
        first = (await client.get(f"/v1/sessions/{session}/result", params={"wait": 60})).json()
        here.open()
        await client.get(f"/v1/sessions/{session}/result", params={"wait": 60, "until": "settled"})
        [task] = (await client.get("/v1/tasks")).json()["items"]
        assert task["usage"] is not None
        names = Names(session_id=session, chat_id="chat", turn_id=first["turn_id"], task_id=task["id"])
        found = {"list": json.dumps(task), "result": json.dumps(first)}
        for path in reading_routes(server.app):
            answer = await client.get(path.format_map(names), headers=NO_STREAM)
            if answer.status_code != 403:
                found[path] = answer.text
        async with Client(server.url, key) as program:
            same = await program.sessions.get(session)
            found["Client"] = repr([await same.result(), await program.tasks.list(), await same.export()])
        stored = await server.outlast.usage_of("ada")
    assert stored.today.known_microdollars == 2 * 54_321_987_654
    assert {where: money_in(text) for where, text in found.items() if money_in(text)} == {}


async def test_a_limit_is_told_as_a_share(runtime: Runtime) -> None:
    """H3: percent and the time at which it begins anew."""
    async with spending(runtime, "ada", "user") as (server, client, key):
        await everything(server, client, key)
        report = json.loads((await client.get("/v1/usage")).text)
    assert report["percent"] == 1
    assert report["resets_at"]
    assert report["limit_microdollars"] is None
