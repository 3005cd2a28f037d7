"""What a client says of itself, in any form: an answer below 500, always (G3)."""

import json
import math
import time
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from jwt.utils import base64url_encode

from tests.api.test_auth import Issuer, an_issuer, bearing
from tests.support.network.server import serving
from tests.support.turns.runtime import Runtime

HUGE = 10**400
ODD: list[Any] = ["1", "soon", "", True, [], {}, [1], {"a": 1}, -1, 1e308, HUGE, math.nan, math.inf, "\x00", "\ud800"]
CLAIMS = ["exp", "nbf", "iat", "sub", "aud", "iss", "roles", "role", "scope", "name", "jti"]
HEADERS = {
    "Host": ["", ":", "a:b", "127.0.0.1:99999999", "[::1", "x" * 5_000, "caf\xe9"],
    "Origin": ["", "://", "null", "\xff", "http://[", "x" * 5_000],
    "Cookie": ["", "=", ";;;", "outlast", "outlast=\xff", 'outlast="\\777', "outlast=olk_" + "0" * 4_000],
    "Authorization": ["", "Bearer", "Bearer \xff", "Bearer olk_", "Bearer a.b.c", "Bearer " + "." * 4_000, "Basic ="],
    "Last-Event-ID": ["", "\xff", "-1", "1" * 2_000, "x" * 5_000],
    "Idempotency-Key": ["", "\xff", "\xa0", "x" * 5_000],
    "Accept": ["", "\xff", "text/event-stream;q=x", "," * 5_000],
    "Content-Type": ["", "\xff", "application/json; charset=\xff", "multipart/form-data", "text/plain", "/" * 5_000],
    "Content-Length": ["0"],
    "traceparent": ["", "\xff", "00-" + "0" * 5_000],
    "Sec-Fetch-Site": ["", "\xff"],
}


def signed(issuer: Issuer, claims: dict[str, Any], head: dict[str, Any] | None = None) -> str:
    """A token that no library would make, with a signature that is right."""
    parts = {"alg": "RS256", "typ": "JWT", "kid": "one", **(head or {})}, {**issuer.claims(), **claims}
    said = b".".join(base64url_encode(json.dumps(each).encode()) for each in parts)
    return (said + b"." + base64url_encode(issuer.key.sign(said, PKCS1v15(), SHA256()))).decode()


async def test_no_claim_of_a_signed_token_is_a_fault_of_the_server(runtime: Runtime) -> None:
    """An issuer may sign anything: text for numbers, numbers that end no century, types that mean nothing."""
    async with an_issuer() as issuer, serving(runtime(jwks_url=issuer.url)) as server:
        client = server.with_headers({})
        for claim in CLAIMS:
            for value in ODD:
                got = await client.get("/v1/sessions", headers=bearing(signed(issuer, {claim: value})))
                assert got.status_code < 500, (claim, value, got.text)
        long = await client.get("/v1/sessions", headers=bearing(signed(issuer, {"sub": "x" * 9_000})))
        assert (long.status_code, long.json()["code"]) == (422, "invalid_input")
        text = signed(issuer, {"exp": str(int(time.time()) + 60)})
        assert (await client.get("/v1/sessions", headers=bearing(text))).status_code == 401
        for kid in ODD:
            got = await client.get("/v1/sessions", headers=bearing(signed(issuer, {}, {"kid": kid})))
            assert got.status_code < 500, kid


@pytest.mark.parametrize("name", HEADERS)
async def test_no_header_is_a_fault_of_the_server(runtime: Runtime, name: str) -> None:
    """Empty, huge, outside of ASCII, or in the wrong form; of somebody known and of a stranger."""
    async with serving(runtime()) as server:
        known, stranger = await server.client(), server.with_headers({})
        session = (await known.post("/v1/sessions", json={})).json()["id"]
        requests = [("GET", "/v1/sessions"), ("POST", f"/v1/sessions/{session}/messages"), ("POST", "/v1/login")]
        for value in HEADERS[name]:
            for method, path in requests:
                for client in (known, stranger):
                    got = await asked(client, method, path, name, value)
                    assert got is None or got < 500, (name, value, path)


async def asked(client: httpx2.AsyncClient, method: str, path: str, name: str, value: str) -> int | None:
    """The status; None when the server ended the connection, as it may for what is not HTTP."""
    try:
        async with client.stream(method, path, headers={name.encode(): value.encode("latin-1")}) as response:
            return response.status_code
    except httpx2.TransportError:
        return None
