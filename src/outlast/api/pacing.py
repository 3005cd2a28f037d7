"""Pacing: whoever is refused again and again waits before anything is done for it.

To refuse costs nearly as much as to answer. Whoever heeds `Retry-After` never notices; whoever does not is answered at
an even pace, and others do not wait behind it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outlast.api.problems import response_of
from outlast.clock import monotonic
from outlast.errors import TooManyRequests

_REFUSALS = frozenset({401, 408, 413, 429, 431})
FREE_REFUSALS = 20
"""So many refusals are answered at once."""
_EVERY_SECONDS = 0.05
_FORGOTTEN_SECONDS = 5.0
_MOST_WAITING = 1_000
_MOST_CALLERS = 10_000
_NEVER_PACED = ("/healthz", "/readyz")


@dataclass(slots=True)
class _Pace:
    refused: int = 0
    refused_at: float = 0.0
    next_at: float = 0.0
    waiting: int = 0


class Pacing:
    """Around the whole app, in this process only. `caller_of` tells one caller from another by its headers."""

    def __init__(self, app: ASGIApp, *, caller_of: Callable[[Request], bytes]) -> None:
        self._app = app
        self._caller_of = caller_of
        self._paces: dict[bytes, _Pace] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].endswith(_NEVER_PACED):
            await self._app(scope, receive, send)
            return
        if self._paces and (pace := self._pace_of(self._caller_of(Request(scope)))) is not None:
            if pace.waiting >= _MOST_WAITING:
                error = TooManyRequests("Too many refused requests: wait, then ask less often.", is_closing=True)
                await response_of(error)(scope, receive, send)
                return
            await _wait(pace)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in _REFUSALS:
                self._note(self._caller_of(Request(scope)))
            await send(message)

        await self._app(scope, receive, sending)

    def _pace_of(self, caller: bytes) -> _Pace | None:
        """Of one that does not heed its refusals."""
        pace = self._paces.get(caller)
        if pace is None:
            return None
        if not pace.waiting and monotonic() - pace.refused_at > _FORGOTTEN_SECONDS:
            del self._paces[caller]
            return None
        return pace if pace.refused > FREE_REFUSALS else None

    def _note(self, caller: bytes) -> None:
        pace = self._paces.pop(caller, None) or _Pace()
        pace.refused += 1
        pace.refused_at = monotonic()
        self._paces[caller] = pace
        if len(self._paces) > _MOST_CALLERS:
            del self._paces[next(iter(self._paces))]


async def _wait(pace: _Pace) -> None:
    now = monotonic()
    at = max(now, pace.next_at)
    pace.next_at = at + _EVERY_SECONDS
    pace.waiting += 1
    try:
        await asyncio.sleep(at - now)
    finally:
        pace.waiting -= 1
