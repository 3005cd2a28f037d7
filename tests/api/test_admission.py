"""Who is let in before anything is read, and how much room each has: strangers, greedy owners, slow clients (G3)."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from pydantic_ai import Tool

from outlast.api import pacing, strangers
from outlast.api.admission import LargeBodies, LargePlace
from outlast.handles.one_session import export
from outlast.testing import call
from tests.support.network.server import Served, frames, serving
from tests.support.turns.background import ThreadGate
from tests.support.turns.runtime import Runtime, scripted

JSON = "Content-Type: application/json\r\n"
MEGABYTE = 1024 * 1024


@asynccontextmanager
async def connected(server: Served, *said: str | bytes) -> AsyncGenerator[asyncio.StreamReader]:
    """A connection that says only this, and then nothing."""
    place = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        for each in said:
            writer.write(each.encode() if isinstance(each, str) else each)
        await writer.drain()
        yield reader
    finally:
        writer.close()


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, dict[str, Any]]:
    """To the end of the connection."""
    head, _, body = (await asyncio.wait_for(reader.read(), 60)).partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]), json.loads(body)


def key_of(client: httpx2.AsyncClient) -> str:
    return f"Authorization: {client.headers['authorization']}\r\n"


async def test_a_stranger_is_refused_before_its_body_is_read(runtime: Runtime) -> None:
    """G3: it is not waited for: the rest of the body never comes, and the answer does."""
    async with serving(runtime()) as server:
        for key in ("", "Authorization: Bearer olk_wrong\r\n", f"Authorization: Bearer olk_{'0' * 26}_{'0' * 64}\r\n"):
            head = f"POST /v1/sessions HTTP/1.1\r\nHost: x\r\n{JSON}{key}Content-Length: {16 * MEGABYTE}\r\n\r\n"
            async with connected(server, head, b"[" * 1_000) as reader:
                line = await asyncio.wait_for(reader.readline(), 60)
                assert line.split()[1] == b"401"
        body = b'{"metadata": "' + b"x" * (8 * MEGABYTE)
        refused = await server.with_headers({}).post("/v1/sessions", content=body)
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")


async def test_an_owner_past_its_rate_is_refused_before_its_body_is_read(runtime: Runtime) -> None:
    """G3"""
    async with serving(runtime(max_requests_per_minute=1)) as server:
        ada = await server.client()
        assert (await ada.get("/v1/sessions")).status_code == 200
        head = f"POST /v1/sessions HTTP/1.1\r\nHost: x\r\n{JSON}{key_of(ada)}Content-Length: 1000000\r\n\r\n"
        async with connected(server, head) as reader:
            assert (await asyncio.wait_for(reader.readline(), 60)).split()[1] == b"429"


async def test_the_login_reads_little(runtime: Runtime) -> None:
    """G3: announced or not."""

    async def chunks() -> AsyncGenerator[bytes]:
        yield b'{"token": "'
        for _ in range(50):
            yield b"x" * 1_000

    async with serving(runtime()) as server:
        anybody = server.with_headers({"Content-Type": "application/json"})
        for content in (b'{"token": "%s"}' % (b"x" * 50_000), chunks()):
            got = await anybody.post("/v1/login", content=content)
            assert (got.status_code, got.json()["code"]) == (413, "body_too_large")


async def test_a_body_that_stands_still_is_not_waited_for(runtime: Runtime) -> None:
    """G3: of somebody known, and at the login."""
    async with serving(runtime(body_timeout=timedelta(milliseconds=100))) as server:
        ada = await server.client()
        for path, key in (("/v1/sessions", key_of(ada)), ("/v1/login", "")):
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\n{JSON}{key}Content-Length: 100\r\n\r\n"
            async with connected(server, head, '{"ti') as reader:
                status, problem = await answer_of(reader)
                assert (status, problem["code"]) == (408, "request_timeout")


async def test_a_head_that_stands_still_is_not_waited_for(runtime: Runtime) -> None:
    """G3: one that has begun is told so; one that is silent is closed, also after a first request."""
    async with serving(runtime(header_timeout=timedelta(milliseconds=100))) as server:
        async with connected(server) as reader:
            assert await asyncio.wait_for(reader.read(), 60) == b""
        async with connected(server, "GET /healthz HTTP/1.1\r\nHost") as reader:
            status, problem = await answer_of(reader)
            assert (status, problem["code"]) == (408, "request_timeout")
        reader, writer = await asyncio.open_connection(urlsplit(server.url).hostname, urlsplit(server.url).port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200" in await reader.readline()
        writer.write(b"GET /heal")
        assert b"HTTP/1.1" not in await asyncio.wait_for(reader.read(), 60)
        writer.close()


async def test_a_head_that_does_not_end_is_not_read(runtime: Runtime) -> None:
    """G3"""
    said = "GET /healthz HTTP/1.1\r\n", "X: " + "x" * 5_000
    async with serving(runtime(max_header_bytes=2_000)) as server, connected(server, *said) as reader:
        status, problem = await answer_of(reader)
        assert (status, problem["code"]) == (431, "head_too_large")


async def test_silent_connections_keep_nobody_out(runtime: Runtime) -> None:
    """G3: the oldest makes room; those over which somebody was let in stay."""
    async with serving(runtime(max_strange_connections=10)) as server, AsyncExitStack() as stack:
        ada = await server.client()
        session = (await ada.post("/v1/sessions", json={})).json()["id"]
        stream = await stack.enter_async_context(
            ada.stream("GET", f"/v1/sessions/{session}/events", headers={"Accept": "text/event-stream"})
        )
        silent = [await stack.enter_async_context(connected(server)) for _ in range(50)]
        assert await asyncio.wait_for(silent[0].read(), 60) == b""
        for _ in range(3):
            assert (await (await server.client("ben")).get("/v1/sessions")).status_code == 200
        await ada.post(f"/v1/sessions/{session}/messages", json={"text": "Hi"})
        async for each in frames(stream):
            if each.data["type"].startswith("input."):
                break


async def test_an_owner_has_a_share_of_streams(runtime: Runtime) -> None:
    """G3: another owner is not affected, and what ends makes room."""
    async with serving(runtime(max_open_requests_per_owner=3)) as server:
        ada, ben = await server.client(), await server.client("ben")
        session = (await ada.post("/v1/sessions", json={})).json()["id"]
        asking = {"Accept": "text/event-stream"}
        async with AsyncExitStack() as stack:
            for _ in range(3):
                opened = ada.stream("GET", f"/v1/sessions/{session}/events", headers=asking)
                assert (await stack.enter_async_context(opened)).status_code == 200
            refused = await ada.post(f"/v1/sessions/{session}/messages", json={"text": "Hi"}, headers=asking)
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
            assert "retry-after" in refused.headers
            assert (await ben.get("/v1/sessions")).status_code == 200
        await eventually(ada, f"/v1/sessions/{session}/messages", lambda got: got.status_code == 200)
        assert (await ada.get(f"/v1/sessions/{session}/messages")).json()["items"] == []


async def eventually(
    client: httpx2.AsyncClient, path: str, holds: Callable[[httpx2.Response], bool]
) -> httpx2.Response:
    while True:
        got = await client.get(path)
        if holds(got):
            return got
        await asyncio.sleep(0.01)


async def test_an_owner_has_a_share_of_bytes(runtime: Runtime) -> None:
    """G3: announced ones are refused before they are read, others as they come."""

    async def chunks() -> AsyncGenerator[bytes]:
        for _ in range(10):
            yield b" " * 1_000

    async with serving(runtime(max_body_bytes_per_minute=5_000)) as server:
        ada, ben = await server.client(), await server.client("ben")
        for client in (ada, ben):
            assert (await client.post("/v1/sessions", json={"title": "x" * 100})).status_code == 201
        for content in (b" " * 4_990, chunks()):
            got = await ada.post("/v1/sessions", content=content, headers={"Content-Type": "application/json"})
            assert (got.status_code, got.json()["code"]) == (429, "too_many_requests")
            assert int(got.headers["retry-after"]) >= 1
        assert (await ben.post("/v1/sessions", json={"title": "x" * 100})).status_code == 201


@pytest.mark.parametrize(
    "body", [b"[" + b"0," * 3_000, b"[" * 3_000, b'"' + b"\\n" * 3_000], ids=["list", "deep", "text"]
)
async def test_a_body_that_is_slow_to_parse_is_not_parsed(runtime: Runtime, body: bytes) -> None:
    """G3: what makes parsing slow is counted, not bytes alone."""
    async with serving(runtime(max_body_values=2_000)) as server:
        ada = await server.client()
        got = await ada.post("/v1/sessions", content=body, headers={"Content-Type": "application/json"})
        assert (got.status_code, got.json()["code"]) == (413, "body_too_large")


async def test_those_known_do_not_wait_behind_strangers(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """G3: while all places for strangers are taken, and stay so."""
    monkeypatch.setattr(strangers, "_PATIENCE_SECONDS", 0.05)
    async with serving(runtime(max_strangers=2)) as server:
        ada, new = await server.client(), await server.client("new")
        assert (await ada.get("/v1/sessions")).status_code == 200
        gate: Any = server.app.state.gate
        async with gate._strangers.place(), gate._strangers.place():
            assert (await ada.get("/v1/sessions")).status_code == 200
            waited = await new.get("/v1/sessions")
            assert (waited.status_code, waited.json()["code"]) == (429, "too_many_requests")
        assert (await new.get("/v1/sessions")).status_code == 200


async def test_who_does_not_heed_refusals_waits_and_nobody_else(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G3: before its key is looked up. Another owner, a stranger from elsewhere and a watchdog are answered."""
    monkeypatch.setattr(pacing, "_EVERY_SECONDS", 3_600.0)
    async with serving(runtime(max_requests_per_minute=2)) as server:
        ada, ben = await server.client(), await server.client("ben")
        answers = [await ada.get("/v1/sessions") for _ in range(2 + pacing.FREE_REFUSALS + 2)]
        assert [each.status_code for each in answers] == [200, 200] + [429] * (pacing.FREE_REFUSALS + 2)
        waiting = asyncio.create_task(ada.get("/v1/sessions"))
        assert (await ben.get("/v1/sessions")).status_code == 200
        assert (await server.with_headers({}).get("/v1/sessions")).status_code == 401
        assert (await ada.get("/readyz")).status_code == 200
        assert not waiting.done()
        waiting.cancel()


async def test_strangers_who_do_not_heed_refusals_wait(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """G3: whatever each of them shows; those known do not wait with them."""
    monkeypatch.setattr(pacing, "_EVERY_SECONDS", 3_600.0)
    async with serving(runtime()) as server:
        ada = await server.client()
        assert (await ada.get("/v1/sessions")).status_code == 200
        for number in range(pacing.FREE_REFUSALS + 2):
            wrong = server.with_headers({"Authorization": f"Bearer olk_wrong{number}"})
            assert (await wrong.get("/v1/sessions")).status_code == 401
        waiting = asyncio.create_task(server.with_headers({}).get("/v1/sessions"))
        assert (await ada.get("/v1/sessions")).status_code == 200
        assert not waiting.done()
        waiting.cancel()


async def test_when_too_many_wait_the_connection_ends(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """G3"""
    monkeypatch.setattr(pacing, "_MOST_WAITING", 0)
    async with serving(runtime(max_requests_per_minute=1)) as server:
        ada = await server.client()
        answers = [await ada.get("/v1/sessions") for _ in range(pacing.FREE_REFUSALS + 4)]
        assert {each.status_code for each in answers[1:]} == {429}
        assert "connection" not in answers[3].headers
        assert answers[-1].headers["connection"] == "close"
        assert "retry-after" in answers[-1].headers


async def test_refusals_are_forgotten(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """G3: who waited a while is answered at once."""
    monkeypatch.setattr(pacing, "_EVERY_SECONDS", 3_600.0)
    monkeypatch.setattr(pacing, "_FORGOTTEN_SECONDS", 0.0)
    async with serving(runtime(max_requests_per_minute=1)) as server:
        ada = await server.client()
        answers = [await ada.get("/v1/sessions") for _ in range(pacing.FREE_REFUSALS + 5)]
        assert {each.status_code for each in answers[1:]} == {429}


async def test_a_revoked_key_that_was_known_is_refused(runtime: Runtime) -> None:
    """G1: being known opens nothing."""
    async with serving(runtime()) as server:
        key, text = await server.outlast.keys.make("ada", "test")
        ada = server.with_headers({"Authorization": f"Bearer {text}"})
        assert (await ada.get("/v1/sessions")).status_code == 200
        await server.outlast.keys.revoke(key.id)
        assert (await ada.get("/v1/sessions")).status_code == 401


async def test_one_owner_does_not_take_all_threads(runtime: Runtime) -> None:
    """A5, G3: sync tools of others find a thread while one owner has more calls than there are threads."""
    here = ThreadGate()

    def hold() -> str:
        here()
        return "held"

    def quick() -> str:
        return "quick"

    model = scripted([call("hold") for _ in range(12)], call("quick"), "Done.", "Held.")
    async with runtime(model, tools=[Tool(hold), Tool(quick)], thread_limit=8) as outlast:
        greedy = await outlast.owned_by("greedy").create()
        waiting = await greedy.send("Hold them all.")
        await here.reached()
        try:
            ben = await outlast.owned_by("ben").create()
            assert (await asyncio.wait_for(ben.ask("Be quick."), 60)).text == "Done."
        finally:
            here.open()
        assert (await waiting.outcome()).text == "Held."


async def test_large_bodies_that_are_whole_at_the_same_moment_are_parsed_one_by_one() -> None:
    """G3: everybody else has the loop between two of them."""
    order: list[str] = []
    large = LargeBodies()

    async def parse(owner_id: str) -> None:
        with large.place_of(owner_id) as place:
            await place.take()
            order.append("parsed")

    async def another() -> None:
        for _ in range(50):
            order.append("another")
            await asyncio.sleep(0)

    await asyncio.gather(*(parse(f"owner {number}") for number in range(10)), another())
    between = "".join("p" if each == "parsed" else "." for each in order)
    assert "pp" not in between
    assert between.count("p") == 10


def large_document(title: str) -> dict[str, Any]:
    said = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "x" * 100_000}]}
    return {"format": export.FORMAT, "session": {"title": title}, "messages": [{"message": said}]}


async def test_an_owner_has_one_large_body_in_hand(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """G3: what it becomes is held once, however many come; another owner's and small ones do not wait for it."""
    reading, go_on, read = asyncio.Queue[str](), asyncio.Event(), export.read

    async def slowly(document: Any) -> export.Document:
        await reading.put(document["session"]["title"])
        await go_on.wait()
        return await read(document)

    monkeypatch.setattr(export, "read", slowly)
    parsed: list[int] = []
    loads = json.loads

    def counted(body: bytes) -> Any:
        parsed.append(len(body))
        return loads(body)

    monkeypatch.setattr(json, "loads", counted)
    async with serving(runtime()) as server:
        ada, ben = await server.client(), await server.client("ben")

        def importing(client: httpx2.AsyncClient, title: str) -> asyncio.Task[httpx2.Response]:
            return asyncio.create_task(client.post("/v1/sessions/import", json=large_document(title)))

        first = importing(ada, "first")
        assert await reading.get() == "first"
        others = [importing(ada, f"other {number}") for number in range(3)]
        bens = importing(ben, "ben's")
        assert await reading.get() == "ben's"
        for _ in range(20):
            assert (await ada.post("/v1/sessions", json={"title": "small"})).status_code == 201
        assert [each for each in parsed if each > 100_000] == [pytest.approx(100_000, abs=1_000)] * 2
        assert reading.empty()
        go_on.set()
        assert [(await each).status_code for each in (first, *others, bens)] == [201] * 5


async def test_the_next_large_body_does_not_wait_for_the_end_of_a_stream(runtime: Runtime) -> None:
    """G3: the answer to the first has begun."""
    here = ThreadGate()

    def hold() -> str:
        here()
        return "held"

    more = "x" * 100_000
    async with serving(runtime(scripted(call("hold"), "Done."), tools=[Tool(hold)])) as server:
        client = await server.client()
        one = (await client.post("/v1/sessions", json={})).json()["id"]
        said = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "Hold."}]}
        async with client.stream("POST", "/api/chat", json={"id": one, "messages": [said], "more": more}) as stream:
            assert stream.status_code == 200
            await here.reached()
            try:
                made = client.post("/v1/sessions/import", json=large_document("The next."))
                assert (await asyncio.wait_for(made, 60)).status_code == 201
            finally:
                here.open()


async def test_only_large_bodies_take_turns(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """G3."""
    taken: list[LargePlace] = []
    real = LargePlace.take

    async def take(self: LargePlace) -> None:
        taken.append(self)
        await real(self)

    monkeypatch.setattr(LargePlace, "take", take)
    async with serving(runtime(scripted("Hello."))) as server:
        client = await server.client()
        session = (await client.post("/v1/sessions", json={"metadata": {"a": 1}})).json()["id"]
        assert taken == []
        large = {"name": "a", "media_type": "text/plain", "data": "QUFB" * 30_000}
        await client.post(f"/v1/sessions/{session}/messages", json={"text": "See.", "files": [large]})
        assert len(taken) == 1
