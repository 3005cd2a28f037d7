"""Admission: who asks, and whether there is room for it, before anything of a body is read.

FastAPI reads and parses a body before it asks any dependency. A route of this class asks first, from the headers alone.
"""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Self

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from outlast.api import auth
from outlast.api.auth import SAFE, Gate
from outlast.api.limits import OpenRequests, Rate
from outlast.errors import TooManyRequests
from outlast.handles.services.slices import OneAtATime
from outlast.settings import Settings

CONNECTION = "outlast.connection"
"""Where a scope has the connection it came by, if the server keeps account of them."""
_LARGE = 64 * 1024
_MARKS = (b",", b"[", b"{", b"\\")
"""Each may be a value, or an escaped character: these, not bytes, are what makes a body slow to parse."""


class AdmittedRoute(APIRoute):
    """A route of ours. One with a `Caller` admits it first; one without reads little."""

    has_caller = False
    is_parsed = True
    """Its bodies are values that are parsed; of others only bytes count."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.has_caller = self.has_caller or _asks_who(self.dependant)

    async def let_in(self, admission: "Admission", request: Request) -> str:
        """From the headers alone. Gives under which name its bytes and requests are counted."""
        return await admission.let_in(request)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        admission: Admission = scope["app"].state.admission
        if scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)
        elif not self.has_caller:
            await super().handle(scope, admission.body_of_anybody(receive), send)
        else:
            request = Request(scope)
            owner_id = await self.let_in(admission, request)
            place = admission.place_for(owner_id, request) if self.is_parsed else None
            body = admission.body_of(owner_id, request, receive, place, is_parsed=self.is_parsed)
            with admission.open_requests.opened(owner_id), place or nullcontext():
                await super().handle(scope, body, send if place is None else place.until_answered(send))


class RawRoute(AdmittedRoute):
    """One whose bodies are files."""

    is_parsed = False


def _asks_who(dependant: Dependant) -> bool:
    return dependant.call is auth.admitted or any(map(_asks_who, dependant.dependencies))


@dataclass(frozen=True, slots=True)
class Admission:
    """What stands between a request's headers and its body."""

    gate: Gate
    open_requests: OpenRequests
    bytes_rate: Rate
    max_values: int
    max_login_bytes: int
    patience: float
    large: "LargeBodies" = field(default_factory=lambda: LargeBodies())

    @classmethod
    def of(cls, settings: Settings, gate: Gate) -> "Admission":
        return cls(
            gate,
            OpenRequests(settings.max_open_requests_per_owner),
            Rate(settings.max_body_bytes_per_minute, "bytes"),
            settings.max_body_values,
            settings.max_login_bytes,
            settings.body_timeout.total_seconds(),
        )

    async def let_in(self, request: Request) -> str:
        """The owner of the request, whom the routes know from now on."""
        principal = request.state.principal = await self.gate.admit(request)
        self.count(request, principal.owner_id)
        return principal.owner_id

    def count(self, request: Request, owner_id: str) -> None:
        """Whoever sends it is known: is there room for it?"""
        connection = request.scope.get(CONNECTION)
        if connection is not None:
            connection.be_known()
        self.open_requests.check(owner_id)
        self.bytes_rate.take(owner_id, _announced(request) or 0)

    def place_for(self, owner_id: str, request: Request) -> "LargePlace | None":
        """None: its body cannot be large."""
        announced = _announced(request)
        if request.method in SAFE or (announced is not None and announced <= _LARGE):
            return None
        return self.large.place_of(owner_id)

    def body_of(
        self, owner_id: str, request: Request, receive: Receive, place: "LargePlace | None", *, is_parsed: bool
    ) -> Receive:
        """Bytes that were not announced are counted as they come."""
        is_announced = _announced(request) is not None

        def check(size: int, received: int, values: int) -> None:
            if is_parsed and values > self.max_values:
                raise _broken_off(413, f"At most {self.max_values} values are read: send less at once.")
            if not is_announced:
                try:
                    self.bytes_rate.take(owner_id, size)
                except TooManyRequests as exc:
                    raise _broken_off(429, exc.message, {"Retry-After": str(exc.details["retry_after"])}) from exc

        return _Body(receive, check, self.patience, place).receive

    def body_of_anybody(self, receive: Receive) -> Receive:
        def check(size: int, received: int, values: int) -> None:
            if received > self.max_login_bytes:
                raise _broken_off(413, f"At most {self.max_login_bytes} bytes are read here.")

        return _Body(receive, check, self.patience).receive


class LargeBodies:
    """A large body is parsed in one go, and becomes very many objects: an owner has one of them in hand at a time.

    The others wait as bytes, which cost nothing, in the order in which they came. Those of different owners that are
    whole at the same moment take turns: between two of them everybody else who waits for the loop has it.
    """

    def __init__(self) -> None:
        self._of_owner = OneAtATime()
        self._turns = asyncio.Lock()

    def place_of(self, owner_id: str) -> "LargePlace":
        return LargePlace(self._of_owner(owner_id), self._turns)


class LargePlace:
    """Of one request: taken when its body is whole and large, free again when its answer begins."""

    def __init__(self, own: asyncio.Lock, turns: asyncio.Lock) -> None:
        self._own = own
        self._turns = turns
        self._is_taken = False

    async def take(self) -> None:
        await self._own.acquire()
        self._is_taken = True
        async with self._turns:
            await asyncio.sleep(0)

    def until_answered(self, send: Send) -> Send:
        """An answer that is a stream lasts as long as a turn: nobody waits for its end."""

        async def sending(message: Message) -> None:
            self.vacate()
            await send(message)

        return sending

    def vacate(self) -> None:
        if self._is_taken:
            self._is_taken = False
            self._own.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.vacate()


class _Body:
    """A body as it comes: counted, and not waited for when it stands still."""

    def __init__(
        self,
        receive: Receive,
        check: Callable[[int, int, int], None],
        patience: float,
        place: LargePlace | None = None,
    ) -> None:
        self._receive = receive
        self._place = place
        self._check = check
        self._patience = patience
        self._received = 0
        self._values = 0
        self._is_whole = False

    async def receive(self) -> Message:
        if self._is_whole:
            return await self._receive()
        try:
            async with asyncio.timeout(self._patience):
                message = await self._receive()
        except TimeoutError:
            why = f"The body stood still for {self._patience:g} s: send it again."
            raise _broken_off(408, why, {"Connection": "close"}) from None
        body: bytes = message.get("body", b"")
        self._is_whole = not message.get("more_body", False)
        self._received += len(body)
        self._values += sum(map(body.count, _MARKS))
        self._check(len(body), self._received, self._values)
        if self._is_whole and self._place is not None and self._received > _LARGE:
            await self._place.take()
        return message


def _announced(request: Request) -> int | None:
    said = request.headers.get("content-length", "")
    return int(said) if said.isascii() and said.isdigit() and len(said) < 20 else None


def _broken_off(status: int, detail: str, headers: dict[str, str] | None = None) -> HTTPException:
    """The framework reads bodies, and lets only its own kind of error through."""
    return HTTPException(status, detail, headers)
