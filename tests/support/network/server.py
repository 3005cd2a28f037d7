"""A server over a real socket, in the test's own event loop, and clients of its owners."""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2
import uvicorn
from pydantic_core import from_json

from outlast import Client, Outlast
from outlast.api.app import create_app
from outlast.api.auth import Authenticate
from outlast.api.connections import guarded
from outlast.store.repositories.keys import Role, Scope

JsonObject = dict[str, Any]


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@dataclass
class Served:
    """A running server; `client()` makes clients that know a key."""

    outlast: Outlast[Any, Any]
    url: str
    app: Any
    _clients: list[httpx2.AsyncClient] = field(default_factory=list[httpx2.AsyncClient])

    async def client(self, owner: str = "ada", *, role: Role = "user", scope: Scope = "write") -> httpx2.AsyncClient:
        _, text = await self.outlast.keys.make(owner, "test", role=role, scope=scope)
        return self.with_headers({"Authorization": f"Bearer {text}"})

    def with_headers(self, headers: dict[str, str]) -> httpx2.AsyncClient:
        client = httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=60)
        self._clients.append(client)
        return client

    async def close(self) -> None:
        for each in self._clients:
            await each.aclose()


@asynccontextmanager
async def serving(
    outlast: Outlast[Any, Any], *, authenticate: Authenticate | None = None, log_requests: bool = False
) -> AsyncGenerator[Served]:
    """The runtime behind HTTP on a free port of this machine."""
    app = create_app(outlast, authenticate=authenticate, log_requests=log_requests)
    async with listening(app, http=guarded(outlast.settings)) as url:
        served = Served(outlast, url, app)
        try:
            yield served
        finally:
            await served.close()


@asynccontextmanager
async def listening(app: Any, *, http: Any = "auto") -> AsyncGenerator[str]:
    """Any app on a free port of this machine; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as port:
        config = uvicorn.Config(
            app, log_config=None, lifespan="on", timeout_graceful_shutdown=1, access_log=False, http=http
        )
        server = _Server(config)
        running = asyncio.create_task(server.serve(sockets=[port]), name="server")
        while not server.started and not running.done():  # noqa: ASYNC110 - it tells nobody else
            await asyncio.sleep(0.01)
        if running.done():
            await running
        try:
            yield f"http://127.0.0.1:{port.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running
            await _end_watcher()


@asynccontextmanager
async def client_of(
    server: Served, owner: str = "ada", *, url: str | None = None, patience: float = 30
) -> AsyncGenerator[Client]:
    """A client with a key of its own, straight to the server or over another address."""
    _, token = await server.outlast.keys.make(owner, "test", role="admin")
    async with Client(url or server.url, token, patience=patience) as client:
        yield client


async def _end_watcher() -> None:
    """The SSE library leaves a coroutine that watches for the end of the process."""
    for each in asyncio.all_tasks():
        if "_shutdown_watcher" in repr(each.get_coro()):
            each.cancel()
            with suppress(asyncio.CancelledError):
                await each


@dataclass(frozen=True)
class Frame:
    """One server-sent event."""

    id: str | None
    data: JsonObject
    event: str | None = None


async def frames(response: httpx2.Response) -> AsyncIterator[Frame]:
    """The events of a stream, as a browser would take them; comments are passed over."""
    id_: str | None = None
    event: str | None = None
    lines: list[str] = []
    async for line in response.aiter_lines():
        if line == "":
            if lines:
                yield Frame(id_, from_json("\n".join(lines)), event)
            id_, event, lines = None, None, []
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "id":
                id_ = value
            elif name == "event":
                event = value
            elif name == "data":
                lines.append(value)
