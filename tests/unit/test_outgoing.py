"""Requests to addresses that others have named reach nothing but the public internet."""

import asyncio
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from outlast.errors import InvalidInput, NotReached
from outlast.outgoing.addresses import is_allowed, networks
from outlast.outgoing.client import OutgoingClient

HERE = networks(["127.0.0.0/8"])


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "192.0.2.1",
        "198.18.0.1",
        "224.0.0.1",
        "239.1.1.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1%eth0",
        "fc00::1",
        "fec0::1",
        "ff02::1",
        "2001:db8::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::808:808",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "no address",
        "",
    ],
)
def test_what_is_not_public_is_refused(address: str) -> None:
    """G5: private, link-local, mapped, tunnelled, multicast: whatever leads to something that is not public."""
    assert not is_allowed(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_what_is_public_is_allowed(address: str) -> None:
    """G5"""
    assert is_allowed(address)


def test_an_operator_may_allow_a_network() -> None:
    """G5: also where its addresses are written as mapped ones; no other network is meant."""
    allowed = networks(["10.1.0.0/16", "fd00::/8"])
    assert [is_allowed(each, allowed) for each in ("10.1.2.3", "::ffff:10.1.2.3", "fd00::5", "10.2.0.1")] == [
        True,
        True,
        True,
        False,
    ]
    with pytest.raises(InvalidInput, match=r"10\.1\.0\.0/16"):
        networks(["everything"])


@asynccontextmanager
async def _answering(answer: bytes) -> AsyncGenerator[tuple[int, list[bytes]]]:
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], heard


@asynccontextmanager
async def _client(allowed: Sequence[Any] = HERE) -> AsyncGenerator[OutgoingClient]:
    client = OutgoingClient(allowed=allowed)
    try:
        yield client
    finally:
        await client.close()


def _resolver(monkeypatch: pytest.MonkeyPatch, answers: Callable[[], Sequence[str]]) -> None:
    def look_up(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in answers()]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


async def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    """G5"""
    answer = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    async with _answering(answer) as (port, heard), _client() as client:
        reply = await client.send("GET", f"http://127.0.0.1:{port}/a", timeout=5, most_bytes=10)
        assert (reply.status, reply.headers["location"], len(heard)) == (302, "http://127.0.0.1:1/", 1)


async def test_a_long_answer_is_cut() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000
    async with _answering(answer) as (port, _), _client() as client:
        reply = await client.send("GET", f"http://127.0.0.1:{port}/", timeout=5, most_bytes=10)
        assert (reply.body, reply.is_cut) == (b"x" * 10, True)


async def test_a_private_address_gets_nothing() -> None:
    """G5: not even a connection."""
    async with _answering(b"") as (port, heard), _client(()) as client:
        for host in ("127.0.0.1", "localhost", "[::1]", "0x7f.1", "2130706433"):
            with pytest.raises(NotReached):
                await client.send("GET", f"http://{host}:{port}/", timeout=5, most_bytes=10)
        assert heard == []


async def test_the_address_that_was_judged_is_the_one_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """G5: a name that is somewhere else at the second look is refused then, and not connected to before."""
    looks = iter([["127.0.0.1"], ["10.0.0.1"], ["127.0.0.1", "10.0.0.1"]])
    async with _answering(b"HTTP/1.1 204 No Content\r\n\r\n") as (port, heard), _client() as client:
        _resolver(monkeypatch, lambda: next(looks))
        url = f"http://rebinding.example:{port}/"
        assert (await client.send("GET", url, timeout=5, most_bytes=10)).status == 204
        for _ in range(2):
            with pytest.raises(NotReached, match=r"10\.0\.0\.1"):
                await client.send("GET", url, timeout=5, most_bytes=10)
        assert len(heard) == 1
        assert b"Host: rebinding.example" in heard[0]


async def test_a_resolver_that_does_not_answer_holds_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """P8, G5: names are not looked up in the threads that files are read in."""
    answers = threading.Event()

    def look_up(*_: Any, **__: Any) -> list[Any]:
        answers.wait(60)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    async with _client() as client:
        asked = [
            asyncio.create_task(client.send("GET", "http://slow.example/", timeout=0.2, most_bytes=10))
            for _ in range(40)
        ]
        try:
            for each in asked:
                with pytest.raises(NotReached):
                    await each
            async with asyncio.timeout(10):
                assert await asyncio.to_thread(lambda: 42) == 42
        finally:
            answers.set()


async def test_silence_ends_in_time() -> None:
    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(wait, "127.0.0.1", 0)
    async with server, _client() as client:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(NotReached):
            await client.send("GET", f"http://127.0.0.1:{port}/", timeout=0.05, most_bytes=10)


@pytest.mark.parametrize(
    "url", ["ftp://example.org/", "file:///etc/passwd", "http://", "nothing", "http://[::1", "//x"]
)
async def test_what_is_no_address_is_refused_in_words(url: str) -> None:
    """G5, G3"""
    async with _client() as client:
        with pytest.raises(NotReached):
            await client.send("GET", url, timeout=1, most_bytes=10)
