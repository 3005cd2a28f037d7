"""The one client for requests to addresses that others name: webhooks, and pages that agents fetch.

What is checked is what is connected to: the name is looked up here, and the connection goes to the address that was
found. Redirects are never followed, no proxy of the environment is used, and each answer is bounded in bytes and time.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import httpcore2

from outlast.errors import NotReached
from outlast.outgoing.addresses import Network, is_allowed


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back; `body` is cut after as many bytes as were asked for."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool = False


class OutgoingClient:
    """Use it in `async with`. `allowed`: networks that may be reached although they are not public."""

    def __init__(self, *, allowed: Sequence[Network] = (), most_connections: int = 32) -> None:
        self._network = _CheckedNetwork(allowed, most_lookups=most_connections)
        self._pool = httpcore2.AsyncConnectionPool(
            max_connections=most_connections,
            max_keepalive_connections=0,  # a name is looked up and judged for each request
            network_backend=self._network,
        )

    async def close(self) -> None:
        await self._pool.aclose()
        self._network.close()

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        timeout: float,
        most_bytes: int,
    ) -> Reply:
        """Raises `NotReached`: refused, no connection, no answer in time. `timeout` is for all of it."""
        try:
            async with asyncio.timeout(timeout):
                async with self.stream(method, url, headers=headers, content=content, timeout=timeout) as response:
                    body, is_cut = await _read(response, most_bytes)
                    return Reply(response.status, _headers(response), body, is_cut)
        except TimeoutError as exc:
            raise NotReached(f"No answer within {timeout:g} seconds.") from exc

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        timeout: float,
    ) -> AsyncGenerator[httpcore2.Response]:
        """The answer, to be read bit by bit; `timeout` is for each step."""
        limits = dict.fromkeys(("connect", "read", "write", "pool"), timeout)
        try:
            async with self._pool.stream(
                method, url, headers=list((headers or {}).items()), content=content, extensions={"timeout": limits}
            ) as response:
                yield response
        except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError) as exc:
            raise NotReached(_said(exc)) from exc
        except (httpcore2.UnsupportedProtocol, ValueError) as exc:
            raise NotReached("This is not an address that can be asked: it begins with https:// or http://.") from exc


async def _read(response: httpcore2.Response, most: int) -> tuple[bytes, bool]:
    found = bytearray()
    async for piece in response.aiter_stream():
        found += piece
        if len(found) > most:
            return bytes(found[:most]), True
    return bytes(found), False


def _headers(response: httpcore2.Response) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}


def _said(exc: Exception) -> str:
    return f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__


class _CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """Looks a name up, judges every address that it has, and connects to one of just these.

    Names are looked up in threads of its own: a resolver that does not answer holds up nothing but such requests.
    """

    def __init__(self, allowed: Sequence[Network], *, most_lookups: int) -> None:
        self._allowed = allowed
        self._threads = ThreadPoolExecutor(most_lookups, thread_name_prefix="look up an address")
        self._inner = cast(httpcore2.AsyncNetworkBackend, httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        addresses = await self._resolve(host, port)
        refused = [each for each in addresses if not is_allowed(each, self._allowed)]
        if refused:
            raise NotReached(f"{host} is at {refused[0]}, which is not a public address: nothing was sent.")
        for each in addresses[:-1]:
            try:
                return await self._inner.connect_tcp(each, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._inner.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _resolve(self, host: str, port: int) -> Sequence[str]:
        look = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._threads, look)
        except (OSError, UnicodeError) as exc:
            raise NotReached(f"There is no address for {host!r}.") from exc
        return list(dict.fromkeys(str(each[4][0]) for each in found))
