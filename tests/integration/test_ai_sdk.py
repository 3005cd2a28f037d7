"""Stock clients of the AI SDK, versions 5, 6 and 7, against a real server: K3."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from outlast.protocols.ai_sdk.encoder import DONE, encode, frame
from outlast.protocols.ai_sdk.messages import MessageFold
from tests.support.logs.turn_events import QUEUED, RESPONSE, TASK, TURN, USAGE, Said, answered, asked, events, text
from tests.support.processes.ai_sdk_process import Server, serving
from tests.support.screens.node import FOLDER, node

VERSIONS = ("5", "6", "7")
PATIENCE = 50.0

SCENARIOS = {
    "send": "text, reasoning and calls arrive, with what they cost",
    "stream": "words are seen before the answer is whole",
    "repeat": "the same message sent twice is one message; one that was changed is refused",
    "reload": "a new page gets the whole answer once, and nothing when nothing runs",
    "first": "a page that is reloaded during its first answer has none to name, and still gets it",
    "leave": "a page that goes away does not stop the turn, and finds it again",
    "cut": "a page whose network broke gets the whole answer once",
    "stop": "stopping ends the stream and keeps what was said",
    "steer": "a message to a running turn is heard in it, at its place",
    "queue": "a message may wait for the next turn instead",
    "interrupt": "a message may stop the turn that runs",
    "held": "a message that a stop leaves waiting is kept, and its stream ends",
    "parked": "a call past its budget has its handle as output; its end is a new message",
    "news": "what becomes of a task is seen in the answer that is being made",
    "regenerate": "the last answer is made again in its place",
    "opened": "a page that is opened anew shows what the old one showed",
    "unasked": "a client that knows no approvals has the handle as output",
    "fail": "a failure and a refusal are said in words",
}


async def run_node(script: str, *arguments: str, given: str = "") -> str:
    process = await asyncio.create_subprocess_exec(
        *(node(), script, *arguments),
        cwd=FOLDER,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate(given.encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    return out.decode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("ai_sdk")) as server:
        yield server


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(server, "ann") as client:
        yield client


def client_of(server: Server, owner: str) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {owner}"}
    return httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=PATIENCE)


def body(chat_id: str, said: str) -> dict[str, Any]:
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": said}]}
    return {"id": chat_id, "messages": [message], "trigger": "submit-message"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=SCENARIOS.keys())
async def test_a_stock_client(server: Server, scenario: str, version: str) -> None:
    """What a page does with `AbstractChat` and `DefaultChatTransport`, step by step in tests/node/scenarios.mjs."""
    await run_node("scenarios.mjs", version, server.url, scenario)


@pytest.mark.parametrize("version", VERSIONS[1:])
@pytest.mark.parametrize("scenario", ["approved", "refused"])
async def test_a_stock_client_decides(server: Server, scenario: str, version: str) -> None:
    """A13, K3: also after a reload; the response is the decision, and its stream the turn that follows."""
    await run_node("scenarios.mjs", version, server.url, scenario)


async def test_a_stream_goes_on_after_the_server_was_killed(tmp_path: Path) -> None:
    """P1, P4: kill -9 in the middle of an answer; the next server finishes it, and a page shows no word twice."""
    with serving(tmp_path) as server:
        for version in VERSIONS:
            async with client_of(server, f"owner-{version}") as client:
                await _read_until_word(client, body(f"recovered-{version}", f"slow recovered-{version}"))
        server.kill()
    with serving(tmp_path) as server:
        for version in VERSIONS:
            await run_node("scenarios.mjs", version, server.url, "recovered")


async def _read_until_word(client: httpx2.AsyncClient, sent: dict[str, Any]) -> None:
    async with client.stream("POST", "/api/chat", json=sent) as response:
        async for line in response.aiter_lines():
            if '"delta":"One "' in line:
                return
    raise AssertionError("the stream ended before its first word")


EVERYTHING: list[Said] = [
    QUEUED,
    *text("1.1.0", "broken"),
    ("part.started", {"part": "1.1.1", "kind": "reasoning"}),
    ("part.delta", {"part": "1.1.1", "offset": 0, "text": "off"}),
    ("part.started", {"part": "1.1.2", "kind": "call", "call_id": "c1", "tool": "survey"}),
    ("part.delta", {"part": "1.1.2", "offset": 0, "text": '{"a'}),
    ("response.dropped", {"reason": "model_error", "dropped": ["1.1.0", "1.1.1", "1.1.2"], "retry_in": 0}),
    *text("1.2.0", "Again."),
    *asked("1.2.1", "c1", "{}"),
    *asked("1.2.2", "c2", "no json"),
    RESPONSE,
    ("call.waiting", {"call_id": "c1", "tool": "survey", "reason": "32 tasks are open"}),
    ("call.progress", {"call_id": "c1", "progress": {"done": 1}}),
    ("task.created", {"task": TASK}),
    ("task.ended", {"task": {**TASK, "state": "succeeded"}}),
    answered("c1", None),
    answered("c2", "It broke.", "failed"),
    answered("c0", "of another message"),
    ("input.delivered", {"input_id": "inp_2", "kind": "message", "text": "Also!", "message": 3}),
    *asked("1.3.0", "c3", '{"city":"Oslo"}'),
    RESPONSE,
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("end", "status"),
    [
        (("turn.completed", {"output": {"city": "Oslo"}, "text": "Done.", "usage": USAGE}), "ready"),
        (("turn.stopped", {"reason": "user", "usage": USAGE}), "ready"),
        (("turn.failed", {"kind": "model_error", "message": "It failed.", "usage": USAGE}), "error"),
    ],
    ids=["completed", "stopped", "failed"],
)
async def test_a_stock_client_takes_everything_that_a_log_may_hold(version: str, end: Said, status: str) -> None:
    """Every chunk that the encoder makes, and its rarest turns: no client ends its stream at one of them."""
    frames = "".join(map(frame, encode(TURN, events(*EVERYTHING, end)))) + DONE
    shown = json.loads(await run_node("play.mjs", version, given=frames))
    assert (shown["status"], shown["error"]) == (status, "It failed." if status == "error" else None)
    answer = shown["messages"][1]
    assert answer["metadata"]["state"] == end[0].partition(".")[2]
    parts = answer["parts"]
    assert all(part["state"] == "done" for part in parts if part["type"] in ("text", "reasoning"))
    calls = [(part["toolCallId"], part["state"]) for part in parts if part["type"] == "tool-survey"]
    last = "output-available" if status == "ready" and end[0] == "turn.completed" else "output-error"
    given_up, answered_calls = ("c1", "output-error"), [("c1", "output-available"), ("c2", "output-error")]
    assert calls == [given_up, *answered_calls, ("c0", "output-available"), ("c3", last)]
    (dropped,) = [part["data"]["parts"] for part in parts if part["type"] == "data-dropped"]
    named = [part["providerMetadata"]["outlast"]["part"] for part in parts if part.get("providerMetadata")]
    assert dropped == ["1.1.0", "1.1.1", "1.1.2"]
    assert named == ["1.1.0", "1.1.1", "1.2.0"], "a page can tell which of its texts were dropped"
    assert [part["data"]["state"] for part in parts if part["type"] == "data-task"] == ["succeeded"]
    fold = MessageFold()
    for chunk in encode(TURN, events(*EVERYTHING, end)):
        fold.add(chunk)
    assert [_seen(part) for part in fold.message["parts"]] == [_seen(part) for part in parts]
    assert fold.message["metadata"] == answer["metadata"]


def _seen(part: dict[str, Any]) -> list[Any]:
    return [part.get(name) for name in ("type", "text", "state", "toolCallId", "output", "errorText", "data")]


async def test_the_stream_has_the_headers_that_proxies_and_clients_want(client: httpx2.AsyncClient) -> None:
    """A client knows the protocol by its header; a proxy must not hold the stream back."""
    response = await client.post("/api/chat", json=body("headers", "hello"))
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert (response.headers["cache-control"], response.headers["x-accel-buffering"]) == ("no-cache", "no")
    assert response.text.endswith(DONE)


async def test_a_chat_is_a_session(client: httpx2.AsyncClient) -> None:
    """A chat's own name is the session's external id, and the session's id is a chat's id too."""
    assert (await client.post("/api/chat", json=body("my chat/1", "hello"))).status_code == 200
    (session,) = (await client.get("/v1/sessions", params={"external_id": "my chat/1"})).json()["items"]
    again = await client.post("/api/chat", json=body(session["id"], "hello"))
    assert f'"session_id":"{session["id"]}"' in again.text
    unknown = await client.post("/api/chat", json=body("ses_unknown", "hello"))
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")


async def test_a_page_that_is_opened_reads_back_page_by_page(client: httpx2.AsyncClient) -> None:
    """The last turns first; files are named, and each message has the id that its client gave it."""
    for number in range(3):
        sent = body("pages", "hello")
        sent["messages"][0]["id"] = f"m{number}"
        sent["messages"][0]["parts"].append({"type": "file", "url": "data:text/plain,abc", "filename": "a.txt"})
        assert (await client.post("/api/chat", json=sent)).status_code == 200
    last = (await client.get("/api/chat/pages/messages", params={"limit": 2})).json()
    first = (await client.get("/api/chat/pages/messages", params={"limit": 2, "before": last["next"]})).json()
    assert [each["id"] for each in first["items"] + last["items"] if each["role"] == "user"] == ["m0", "m1", "m2"]
    assert (len(first["items"]), first["next"]) == (2, None)
    file, said = first["items"][0]["parts"]
    assert (file["data"]["name"], file["data"]["bytes"], said["text"]) == ("a.txt", 3, "hello")
    new = (await client.get("/api/chat/never-used/messages")).json()
    assert new == {"items": [], "next": None}
    assert (await client.get("/api/chat/no%00name/messages")).status_code == 422


async def test_a_chat_of_another_owner_is_not_there(server: Server, client: httpx2.AsyncClient) -> None:
    """P7: the same name is another chat, and neither its stream nor its stop reach the first."""
    async with client.stream("POST", "/api/chat", json=body("private", "slow private")) as response:
        lines = response.aiter_lines()
        async for line in lines:
            if '"delta":"One "' in line:
                break
        async with client_of(server, "eve") as eve:
            assert (await eve.get("/api/chat/private/stream")).status_code == 204
            assert (await eve.post("/api/chat/private/stop")).status_code == 404
            assert (await eve.get("/api/chat/private/messages")).json()["items"] == []
        assert (await client.post("/gates/private")).status_code == 200
        assert '"delta":"two."' in "".join([line async for line in lines])


async def test_only_the_last_answer_can_be_made_again(client: httpx2.AsyncClient) -> None:
    """An earlier one would take what came after it away. A message whose sending failed is sent instead."""
    first, second = body("earlier", "hello"), body("earlier", "hello")
    second["messages"][0]["id"] = "m2"
    for each in (first, second):
        assert (await client.post("/api/chat", json=each)).status_code == 200
    refused = await client.post("/api/chat", json={**first, "trigger": "regenerate-message"})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    made = await client.post("/api/chat", json={**second, "trigger": "regenerate-message"})
    assert (made.status_code, '"origin":"regenerate"' in made.text) == (200, True)
    lost = body("earlier", "hello")
    lost["messages"][0]["id"] = "m3"
    sent = await client.post("/api/chat", json={**lost, "trigger": "regenerate-message"})
    assert (sent.status_code, '"origin":"user"' in sent.text) == (200, True)
    shown = (await client.get("/api/chat/earlier/messages")).json()["items"]
    assert [each["id"] for each in shown if each["role"] == "user"] == ["m1", "m2", "m3"]
    assert [each["role"] for each in shown] == ["user", "assistant"] * 3


@pytest.mark.parametrize("sent", ["{}", "[]", '{"id":"c","messages":[{"id":"m","role":"assistant","parts":[]}]}'])
async def test_a_body_that_is_no_chat_is_refused(client: httpx2.AsyncClient, sent: str) -> None:
    """Nothing is made of it, and the answer says what is wrong."""
    refused = await client.post("/api/chat", content=sent, headers={"Content-Type": "application/json"})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
