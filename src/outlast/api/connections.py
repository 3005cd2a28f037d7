"""Connections of a server process: how long they may be silent, and how many over which nobody was let in.

uvicorn waits for the head of a first request for ever, and reads as much of it as comes.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from outlast.api.admission import CONNECTION
from outlast.api.problems import response_of
from outlast.errors import HeadTooLarge, RequestTimeout
from outlast.settings import Settings

_NONSENSE_SECONDS = 0.5


class Connections:
    """All connections over which nobody was let in yet, oldest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._strange: dict[Connection, None] = {}

    def add(self, connection: "Connection") -> None:
        """The oldest that says nothing makes room: whoever has something to say, says it at once."""
        self._strange[connection] = None
        if len(self._strange) > self._most:
            silent = (each for each in self._strange if not each.is_at_work)
            next(silent, connection).close()

    def discard(self, connection: "Connection") -> None:
        self._strange.pop(connection, None)


class Connection(AutoHTTPProtocol):  # pyright: ignore[reportUntypedBaseClass, reportGeneralTypeIssues]
    """uvicorn's protocol with a limit for the head of a request: seconds, and bytes."""

    all_strange: Connections
    head_seconds: float
    max_head_bytes: int
    max_rest_bytes: int
    """Of a body that was answered before it was whole: most clients send all of it before they read an answer."""
    transport: asyncio.Transport
    cycle: Any

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._plain: Callable[..., Any] = self.app
        self.app = self._serve
        self._timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._is_nonsense = False

    @property
    def is_at_work(self) -> bool:
        """A request came over it whose answer is not over yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def be_known(self) -> None:
        self.all_strange.discard(self)

    def close(self) -> None:
        self.all_strange.discard(self)
        self.transport.close()

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_head()
        self.all_strange.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self.all_strange.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing() or self._is_nonsense:
            return
        is_head = not self.is_at_work
        super().data_received(data)
        if self.is_at_work:
            self._stop_waiting()
        elif is_head:
            self._head_bytes += len(data)
            if self._head_bytes > (self.max_head_bytes if self.cycle is None else self.max_rest_bytes):
                self._refuse(HeadTooLarge(f"At most {self.max_head_bytes} bytes of headers are read: send less."))
            elif self._timer is None:
                self._wait_for_head()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP gets its answer after a while: whoever sends it again and again costs little."""
        self._is_nonsense = True
        asyncio.get_running_loop().call_later(_NONSENSE_SECONDS, self._answer_nonsense, msg)

    def _answer_nonsense(self, msg: str) -> None:
        if not self.transport.is_closing():
            super().send_400_response(msg)  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._plain({**scope, CONNECTION: self}, receive, send)

    def _wait_for_head(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self.head_seconds, self._too_slow)

    def _stop_waiting(self) -> None:
        self._head_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._refuse(RequestTimeout(f"The head of the request did not come within {self.head_seconds:g} s."))

    def _refuse(self, error: HeadTooLarge | RequestTimeout) -> None:
        """Said only to whoever has begun its first request: else nobody waits for an answer."""
        if self._head_bytes and self.cycle is None and not self.transport.is_closing():
            answer = response_of(error)
            head = [f"HTTP/1.1 {answer.status_code} {type(error).__name__}".encode(), b"connection: close"]
            head += [name + b": " + value for name, value in answer.raw_headers]
            self.transport.write(b"\r\n".join([*head, b"", bytes(answer.body)]))
        self.close()


def guarded(settings: Settings) -> type[asyncio.Protocol]:
    """For `uvicorn.Config(http=...)`: the connections of one server."""
    limits = {
        "all_strange": Connections(settings.max_strange_connections),
        "head_seconds": settings.header_timeout.total_seconds(),
        "max_head_bytes": settings.max_header_bytes,
        "max_rest_bytes": settings.max_header_bytes + settings.max_body_bytes,
    }
    return type("GuardedConnection", (Connection,), limits)
