"""Callers who have shown nothing yet that was accepted: few of them are looked at at once.

To tell a right key from a wrong one takes the same work. Whoever was let in before does not wait behind those who were
not.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import Request

from outlast.errors import TooManyRequests, Unauthenticated

_MOST_KNOWN = 10_000
_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.1
"""How long a refused stranger keeps its place while others wait for one."""
_SHOWING = frozenset({b"authorization", b"cookie"})
_PASSING = frozenset(
    {
        *(b"content-length", b"content-type", b"accept", b"idempotency-key", b"last-event-id"),
        *(b"traceparent", b"tracestate", b"x-request-id", b"transfer-encoding", b"connection", b"if-none-match"),
    }
)
"""What a request says of itself, not of whoever sends it."""


def shown_by(request: Request, *, is_programs: bool) -> bytes:
    """What the caller shows of itself, in a form that nobody can use. A program may look at any of its headers."""
    found: list[bytes] = []
    for name, value in request.scope["headers"]:
        if name in _SHOWING or (is_programs and name not in _PASSING):
            found += (name, value)
    if is_programs and request.client is not None:
        found.append(request.client.host.encode())
    return hashlib.blake2b(b"\0".join(found), digest_size=16).digest()


class Strangers:
    """In this process only. Nothing is let in by it: what is known is looked up again each time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._places = asyncio.Semaphore(most)
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def knows(self, shown: bytes) -> bool:
        return shown in self._known

    def remember(self, shown: bytes) -> None:
        self._known[shown] = None
        self._known.move_to_end(shown)
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)

    def forget(self, shown: bytes) -> None:
        self._known.pop(shown, None)

    @asynccontextmanager
    async def place(self) -> AsyncGenerator[None]:
        """Wait for a turn to be looked at. While others wait, a refusal takes its time."""
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._places.acquire()
        except TimeoutError:
            raise TooManyRequests("Too many unknown callers at once: try again.", retry_after=1) from None
        try:
            yield
        except Unauthenticated:
            if self._places.locked():
                await asyncio.sleep(_PAUSE_SECONDS)
            raise
        finally:
            self._places.release()
