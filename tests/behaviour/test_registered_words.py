"""A registered value may be any word, also one of the runtime's own: nothing but what others wrote is masked (A11)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from pydantic_ai import BinaryContent, Tool, ToolReturn
from pydantic_ai.exceptions import ModelRetry

import outlast as public
from fuzz.nasty import WORDS
from outlast.testing import call, reply
from outlast.testing import text as said
from tests.support.network.server import Served, serving
from tests.support.turns.runtime import Runtime, scripted

SAID = "my words: " + ", ".join(WORDS)


@pytest.fixture
def runtime(database_url: str, tmp_path: Path) -> Runtime:
    return Runtime(database_url, files=str(tmp_path / "files"))


def register() -> str:
    for word in WORDS:
        public.secret(word)
    public.progress(1, 2, label=SAID)
    public.output(SAID)
    public.artifact("notes.txt", b"nothing", "text/plain")
    return SAID


def survey() -> Any:
    picture = BinaryContent(b"\x89PNG", media_type="image/png")
    return ToolReturn({"request": SAID, "timestamp": [{"part_kind": "x"}]}, content=["see", picture])


def large() -> str:
    return SAID * 400


def again(depth: int = 0) -> str:
    raise ModelRetry(SAID)


async def later() -> str:
    await asyncio.sleep(0.05)
    return SAID


TOOLS = [register, survey, large, again, Tool(later, metadata=public.hints(budget=0.01))]
STEPS = [
    call("register", call_id="completed-1"),
    call("survey", {"content": SAID}, call_id="tool-call-1"),
    call("large"),
    call("again", {"depth": "tool_name"}),
    call("again"),
    call("later", call_id="running-1"),
    reply(said(SAID, chunk=5)),
]
DOORS = (
    *("/v1/sessions", "/v1/sessions/{id}", "/v1/tasks", "/v1/events", "/v1/usage", "/v1/sessions/{id}/messages"),
    *("/v1/sessions/{id}/events", "/v1/sessions/{id}/result", "/v1/sessions/{id}/inbox?whole=true"),
    *("/v1/sessions/{id}/export", "/api/chat/{id}/messages"),
)


async def answer(server: Served, owner: str, *texts: str) -> dict[str, Any]:
    """What all doors say of a session to which these texts were said, and what an import of its export came to."""
    client = await server.client(owner)
    session = (await client.post("/v1/sessions", json={"metadata": {"content": SAID}})).json()["id"]
    for text in texts:
        await client.post(f"/v1/sessions/{session}/messages", json={"text": text})
        result = await client.get(f"/v1/sessions/{session}/result", params={"wait": 20, "until": "settled"})
        assert result.status_code == 200, result.text
        assert result.json()["state"] == "completed", result.text
    found: dict[str, Any] = {}
    for door in DOORS:
        told = await client.get(door.format(id=session), headers={"Accept": "application/json"})
        assert told.status_code == 200, (door, told.text)
        found[door] = told.json()
    imported = await client.post("/v1/sessions/import", json=found["/v1/sessions/{id}/export"])
    assert imported.status_code < 300, imported.text
    return found


async def test_words_of_the_runtime_stop_nobody(runtime: Runtime) -> None:
    """Every turn of every owner completes, every door answers, and the same words of others are starred."""
    model = scripted(*STEPS, "Heard.", "Next.", "Hello.", "Hello again.")
    async with serving(runtime(model, tools=TOOLS)) as server:
        ada = await answer(server, "ada", "Go.", SAID)
        await answer(server, "bob", SAID, "Hi.")
    assert [each["state"] for each in ada["/v1/tasks"]["items"]] == ["succeeded"]
    document = ada["/v1/sessions/{id}/export"]
    assert {each["state"] for each in document["turns"]} == {"completed"}
    assert {each["message"]["kind"] for each in document["messages"]} == {"request", "response"}
    assert document["session"]["metadata"].keys() == {"*******"}
    parts = [part for each in document["messages"] for part in each["message"]["parts"]]
    assert all(not each.get("content") or SAID not in str(each["content"]) for each in parts)
    returned = next(each for each in parts if each.get("tool_name") == "survey" and "args" not in each)
    assert "request" not in returned["content"], "names in what a tool gives are its own"
    assert SAID[:10] in str(parts)


async def test_nor_after_a_restart(runtime: Runtime) -> None:
    """With a key the words are known to the next process before anybody registers them."""
    options: dict[str, Any] = {"tools": TOOLS, "encryption_keys": (Fernet.generate_key().decode(),)}
    async with runtime(scripted(call("register"), "Done."), **options) as outlast:
        await (await outlast.sessions.create()).ask("Go.")
    async with serving(runtime(scripted(call("survey"), SAID), **options)) as server:
        told = await answer(server, "cyd", SAID)
    assert SAID not in str(told)
