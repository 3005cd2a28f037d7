"""Who gets in: JWTs by JWKS, the program's own way, a browser's cookie; and what a stranger's page may not (G1, G3)."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx2
import jwt
import pytest
import structlog
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from fastapi import FastAPI, Request
from jwt.algorithms import RSAAlgorithm

from outlast.api import Principal, create_app
from outlast.store.repositories import keys
from outlast.testing import call
from tests.support.moments.checkpoint import Checkpoint
from tests.support.network.server import Served, serving
from tests.support.turns.runtime import Runtime, scripted

AUDIENCE = "outlast"


class Issuer:
    """Signs tokens, and publishes the key that proves it."""

    def __init__(self) -> None:
        self.key: RSAPrivateKey = generate_private_key(public_exponent=65537, key_size=2048)
        self.url = ""

    def claims(self) -> dict[str, Any]:
        return {"sub": "ada", "aud": AUDIENCE, "iss": "me", "exp": time.time() + 60}

    def token(self, key: RSAPrivateKey | None = None, **claims: Any) -> str:
        given = {**self.claims(), **claims}
        return jwt.encode(
            {name: value for name, value in given.items() if value is not None},
            key or self.key,
            algorithm="RS256",
            headers={"kid": "one"},
        )

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        public = json.loads(RSAAlgorithm.to_jwk(self.key.public_key()))
        body = json.dumps({"keys": [{**public, "kid": "one", "use": "sig"}]}).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % len(body) + body)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def an_issuer() -> AsyncGenerator[Issuer]:
    issuer = Issuer()
    server = await asyncio.start_server(issuer.answer, "127.0.0.1", 0)
    async with server:
        issuer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys"
        yield issuer


def bearing(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_a_signed_token_names_its_owner(runtime: Runtime) -> None:
    """G1: JWT by JWKS; `sub` is the owner, a role makes an admin."""
    async with an_issuer() as issuer:
        outlast = runtime(jwks_url=issuer.url, jwt_audience=AUDIENCE, jwt_issuer="me")
        async with serving(outlast) as server:
            ada = server.with_headers(bearing(issuer.token()))
            made = await ada.post("/v1/sessions", json={})
            assert made.status_code == 201
            ben = server.with_headers(bearing(issuer.token(sub="ben")))
            assert (await ben.get(f"/v1/sessions/{made.json()['id']}")).status_code == 404
            assert (await ada.get("/v1/keys")).status_code == 403
            root = server.with_headers(bearing(issuer.token(sub="root", roles=["admin"])))
            assert (await root.get("/v1/keys")).status_code == 200


@pytest.mark.parametrize(
    "claims",
    [{"exp": 1}, {"exp": None}, {"aud": "somebody else"}, {"iss": "somebody else"}, {"sub": None}, {"key": "foreign"}],
    ids=str,
)
async def test_a_token_that_proves_nothing_is_refused(runtime: Runtime, claims: dict[str, Any]) -> None:
    """G1: expired, unlimited, meant for others, from others, nameless, or signed by somebody else."""
    async with an_issuer() as issuer:
        if claims.pop("key", None):
            claims["key"] = generate_private_key(public_exponent=65537, key_size=2048)
        outlast = runtime(jwks_url=issuer.url, jwt_audience=AUDIENCE, jwt_issuer="me")
        async with serving(outlast) as server:
            stranger = server.with_headers(bearing(issuer.token(**claims)))
            assert (await stranger.get("/v1/sessions")).status_code == 401


async def test_an_unsigned_token_is_refused(runtime: Runtime) -> None:
    async with an_issuer() as issuer, serving(runtime(jwks_url=issuer.url)) as server:
        unsigned = jwt.encode({"sub": "ada", "exp": time.time() + 60}, "", algorithm="none")
        assert (await server.with_headers(bearing(unsigned)).get("/v1/sessions")).status_code == 401


async def test_a_program_brings_its_own_way(runtime: Runtime) -> None:
    """G1: `authenticate=` is asked first; None means that somebody else may know."""

    async def authenticate(request: Request) -> Principal | str | None:
        name = request.headers.get("x-user")
        return Principal(name, role="admin") if name == "root" else name

    async with serving(runtime(), authenticate=authenticate) as server:
        assert (await server.with_headers({"x-user": "ada"}).get("/v1/sessions")).status_code == 200
        assert (await server.with_headers({"x-user": "ada"}).get("/v1/keys")).status_code == 403
        assert (await server.with_headers({"x-user": "root"}).get("/v1/keys")).status_code == 200
        assert (await server.with_headers({}).get("/v1/sessions")).status_code == 401
        assert (await (await server.client()).get("/v1/sessions")).status_code == 200


async def test_a_link_is_worth_one_cookie(runtime: Runtime) -> None:
    """G1: the token in the fragment is swapped once for an HttpOnly cookie; the cookie acts for this site only."""
    async with serving(runtime()) as server:
        ada = await server.client()
        token = (await ada.post("/v1/login/links")).json()["token"]
        browser, other = server.with_headers({}), server.with_headers({})
        swapped = await browser.post("/v1/login", json={"token": token})
        assert swapped.status_code == 200
        cookie = swapped.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        # Browsers send the cookies of a host to all its ports: another server there must not take this one's place.
        assert cookie.startswith(f"outlast_{urlsplit(server.url).port}=")
        assert (await other.post("/v1/login", json={"token": token})).status_code == 401
        assert (await browser.post("/v1/sessions", json={})).status_code == 201
        foreign = await browser.post("/v1/sessions", json={}, headers={"Origin": "https://evil.example"})
        assert (foreign.status_code, foreign.json()["code"]) == (403, "forbidden")
        own = await browser.post("/v1/sessions", json={}, headers={"Origin": server.url})
        assert own.status_code == 201


async def read_to_its_end(reader: httpx2.AsyncClient, path: str, begun: asyncio.Event) -> None:
    """A stream that nothing but the server ends."""
    async with reader.stream("GET", path, headers={"Accept": "text/event-stream"}) as response:
        assert response.status_code == 200
        begun.set()
        async for _ in response.aiter_raw():
            continue


@asynccontextmanager
async def reading(server: Served, headers: dict[str, str]) -> AsyncGenerator[None]:
    """Streams of a session and of all, until both have ended."""
    reader = server.with_headers(headers)
    path = f"/v1/sessions/{(await reader.post('/v1/sessions', json={})).json()['id']}/events"
    begun = [asyncio.Event(), asyncio.Event()]
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for each, started in zip((path, "/v1/events"), begun, strict=True):
            group.create_task(read_to_its_end(reader, each, started))
        for started in begun:
            await started.wait()
        yield


async def test_streams_end_with_the_key_that_opened_them(runtime: Runtime) -> None:
    """G1: revocable at once, and those of other keys go on."""
    async with serving(runtime()) as server:
        key, text = await server.outlast.keys.make("ada", "spare")
        other = await server.client()
        still = asyncio.create_task(read_to_its_end(other, "/v1/events", asyncio.Event()))
        async with reading(server, bearing(text)):
            await server.outlast.keys.revoke(key.id)
        assert not still.done()
        still.cancel()
        await asyncio.wait({still})


async def test_streams_end_also_when_nobody_tells_that_the_key_was_revoked(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G1: by another program, on the same file."""
    monkeypatch.setattr("outlast.handles.keys.LOOK_EVERY", timedelta(seconds=0.05))
    async with serving(runtime()) as server:
        key, text = await server.outlast.keys.make("ada", "spare")
        async with reading(server, bearing(text)):
            await server.outlast.database.transaction(lambda unit: keys.revoke(unit, key.id), name="elsewhere")


async def test_streams_end_when_the_key_or_the_token_does(runtime: Runtime) -> None:
    """G1"""
    async with an_issuer() as issuer, serving(runtime(jwks_url=issuer.url)) as server:
        _, text = await server.outlast.keys.make("ada", "short", expires_in=timedelta(seconds=2))
        async with reading(server, bearing(text)):
            pass
        async with reading(server, bearing(issuer.token(exp=int(time.time()) + 3))):
            pass


async def test_a_browser_that_logs_out_is_out(runtime: Runtime) -> None:
    """G1: what was copied from its cookie opens nothing, and its streams end; a key is not lost by it."""
    async with serving(runtime()) as server:
        ada = await server.client()
        token = (await ada.post("/v1/login/links")).json()["token"]
        browser = server.with_headers({})
        await browser.post("/v1/login", json={"token": token})
        copied = {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
        async with reading(server, copied):
            assert (await browser.post("/v1/logout")).status_code == 204
        assert (await server.with_headers(copied).get("/v1/sessions")).status_code == 401
        assert (await ada.post("/v1/logout")).status_code == 204
        assert (await ada.get("/v1/sessions")).status_code == 200


async def test_a_revoked_key_ends_the_links_and_cookies_made_with_it(runtime: Runtime) -> None:
    """G1: also a cookie that was made with such a cookie, and what each of them streams."""
    async with serving(runtime()) as server:
        key, text = await server.outlast.keys.make("ada", "laptop")
        first = await logged_in(server, server.with_headers(bearing(text)))
        second = await logged_in(server, server.with_headers(first))
        unused = (await server.with_headers(first).post("/v1/login/links")).json()["token"]
        async with reading(server, first), reading(server, second):
            await server.outlast.keys.revoke(key.id)
        for cookie in (first, second):
            assert (await server.with_headers(cookie).get("/v1/sessions")).status_code == 401
        refused = await server.with_headers({}).post("/v1/login", json={"token": unused})
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
        assert "set-cookie" not in refused.headers


async def test_a_wait_ends_with_the_key_that_asked(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """G1: what comes later is not told to whoever may no longer know it."""
    here, waiting = Checkpoint(), asyncio.Event()

    async def left(request: Request) -> None:
        waiting.set()
        await asyncio.Event().wait()

    async def survey() -> str:
        await here()
        return "12 metres"

    monkeypatch.setattr("outlast.api.wiring._left", left)
    async with asyncio.timeout(60), serving(runtime(scripted(call("survey"), "done"), tools=[survey])) as server:
        key, text = await server.outlast.keys.make("ada", "laptop")
        client = server.with_headers(bearing(text))
        session = (await client.post("/v1/sessions", json={})).json()["id"]
        await client.post(f"/v1/sessions/{session}/messages", json={"text": "go"})
        asked = asyncio.create_task(client.get(f"/v1/sessions/{session}/result?wait=10"))
        await waiting.wait()
        await server.outlast.keys.revoke(key.id)
        assert (await asked).status_code == 401
        here.open()


async def logged_in(server: Served, client: httpx2.AsyncClient) -> dict[str, str]:
    """The cookie of a browser that followed a link which this client made."""
    token = (await client.post("/v1/login/links")).json()["token"]
    browser = server.with_headers({})
    assert (await browser.post("/v1/login", json={"token": token})).status_code == 200
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}


async def test_other_origins_are_closed_unless_set(runtime: Runtime) -> None:
    """G1: CORS."""
    asking = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    async with serving(runtime()) as server:
        closed = await server.with_headers(asking).options("/v1/sessions")
        assert "access-control-allow-origin" not in closed.headers
    async with serving(runtime(cors_origins=("https://app.example",))) as server:
        opened = await server.with_headers(asking).options("/v1/sessions")
        assert opened.headers["access-control-allow-origin"] == "https://app.example"
        other = await server.with_headers({**asking, "Origin": "https://evil.example"}).options("/v1/sessions")
        assert "access-control-allow-origin" not in other.headers


async def test_too_many_requests_are_told_when_to_come_back(runtime: Runtime) -> None:
    """G3: a limit per owner, with Retry-After; another owner is not affected."""
    async with serving(runtime(max_requests_per_minute=5)) as server:
        ada, ben = await server.client(), await server.client("ben")
        answers = [await ada.get("/v1/sessions") for _ in range(7)]
        assert [each.status_code for each in answers[:5]] == [200] * 5
        assert answers[-1].status_code == 429
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert (await ben.get("/v1/sessions")).status_code == 200


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b'{"title": "%s"}' % (b"x" * 2_000), "application/json", 413),
        (b"[" * 900, "application/json", 422),
        (b'{"metadata":' + b'{"a":' * 180 + b"1" + b"}" * 181, "application/json", 201),
        (b'{"title": "\xff\xfe"}', "application/json", 400),
        ('{"title": "é"}'.encode("latin-1"), "application/json", 400),
        (b'{"title": "\\ud800"}', "application/json", 422),
        (b'{"title": "a\\u0000b"}', "application/json", 422),
        (b'{"title": NaN}', "application/json", 422),
        (b"{}", "text/plain", 422),
        (b"", "application/json", 422),
        (b"null", "application/json", 422),
        (b'{"title": 5}', "application/json", 422),
        (b'{"metadata": {"a": 1e999}}', "application/json", 422),
    ],
)
async def test_a_bad_body_is_told_so(runtime: Runtime, body: bytes, content_type: str, status: int) -> None:
    """G3: oversized, malformed, deeply nested, wrongly encoded: never a 5xx, and nothing is stored."""
    async with serving(runtime(max_body_bytes=1_200)) as server:
        ada = await server.client()
        answer = await ada.post("/v1/sessions", content=body, headers={"Content-Type": content_type})
        assert answer.status_code == status, answer.text
        if status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
            assert (await ada.get("/v1/sessions")).json()["items"] == []


async def test_a_body_without_a_length_is_bounded_too(runtime: Runtime) -> None:
    """G3: chunked bodies are counted as they come."""

    async def endless() -> AsyncGenerator[bytes]:
        for _ in range(100):
            yield b" " * 100

    async with serving(runtime(max_body_bytes=1_200)) as server:
        ada = await server.client()
        answer = await ada.post("/v1/sessions", content=endless(), headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


async def test_it_can_be_mounted_in_another_app(runtime: Runtime) -> None:
    """K5: the runtime is entered by the other app; paths move with the mount."""
    async with runtime() as outlast:
        _, key = await outlast.keys.make("ada", "test")
        other = FastAPI()
        other.mount("/agents", create_app(outlast))
        transport = httpx2.ASGITransport(app=other)
        async with httpx2.AsyncClient(transport=transport, base_url="http://test", headers=bearing(key)) as client:
            assert (await client.post("/agents/v1/sessions", json={})).status_code == 201
            assert (await client.get("/agents/v1/sessions")).json()["items"]


async def test_a_cookie_does_not_outlive_what_it_was_made_with(runtime: Runtime) -> None:
    """G1: a key or token that ends soon is not worth a month."""
    async with an_issuer() as issuer, serving(runtime(jwks_url=issuer.url)) as server:
        key, text = await server.outlast.keys.make("ada", "short", expires_in=timedelta(minutes=5))
        anybody = server.with_headers({})
        for credential in (text, issuer.token(exp=int(time.time()) + 60), issuer.token(exp=10**30)):
            link = await anybody.post("/v1/login/links", headers=bearing(credential))
            swapped = await anybody.post("/v1/login", json={"token": link.json()["token"]})
            assert swapped.status_code == 200
        ends = [each.expires_at for each in await server.outlast.keys.list("ada") if each.name == "browser"]
        month, token_s, key_s = (each or datetime.max.replace(tzinfo=UTC) for each in ends)
        assert key.expires_at is not None
        assert abs(key_s - key.expires_at) < timedelta(seconds=5)
        assert token_s < key_s < month < datetime.now(UTC) + timedelta(days=31)


@pytest.mark.parametrize("claims", [{"sub": "\ud800"}, {"name": "\ud800"}, {"sub": "a\x00"}, {"sub": ""}])
async def test_a_name_that_no_store_takes_is_refused(runtime: Runtime, claims: dict[str, Any]) -> None:
    """G3: whatever an issuer signs."""
    async with an_issuer() as issuer, serving(runtime(jwks_url=issuer.url)) as server:
        asking = server.with_headers(bearing(issuer.token(**claims)))
        assert (await asking.post("/v1/sessions", json={})).status_code == 422


async def test_a_failed_request_does_not_log_its_key(runtime: Runtime, capsys: pytest.CaptureFixture[str]) -> None:
    """G6: not even where the program set up no logs, and structlog would show the variables of every frame."""

    async def broken(request: Request) -> str:
        raise RuntimeError("broken")

    structlog.reset_defaults()
    async with serving(runtime(), authenticate=broken) as server:
        asking = server.with_headers(bearing("olk_this_is_secret"))
        assert (await asking.get("/v1/sessions")).status_code == 500
    said = capsys.readouterr()
    assert "broken" in said.out + said.err
    assert "this_is_secret" not in said.out + said.err
