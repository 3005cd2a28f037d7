"""HTTP to one server: problems become errors, and what is safe to send again is sent again."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast
from urllib.parse import quote, urlsplit

import httpx2
from httpx2 import EventSource, ServerSentEvent

from outlast.backoff import Pauses
from outlast.clock import monotonic
from outlast.errors import InvalidInput, NotFound, OutlastError, ServerFault, Unreachable

_MEDIA_TYPE = "text/event-stream"
_ANSWER_SECONDS = 30.0
_SILENCE_SECONDS = 25.0
"""A stream says that it is alive every ten seconds; one that does not is taken for dead."""
_BEGIN_SECONDS = 10.0
"""A server that is asked for a stream answers at once, whatever there is to tell; one that does not is stuck."""
_STEADY_SECONDS = 5.0
_NO_SUCH_ROUTE = (404, 405)
"""A server says which thing it does not find; whoever only says that is none."""
_TRY_LATER = (429, 502, 503, 504)
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
"""Each stream is a connection of its own, and a program may follow as many as it likes."""
_NOT_CONNECTED = (httpx2.ConnectError, httpx2.ConnectTimeout)

Params = Mapping[str, str | int | float | bool | None]


class Connection:
    """One pool of connections with one token. A server that was never there is not waited for."""

    def __init__(self, url: str, token: str | None, *, patience: float) -> None:
        self.url = url.rstrip("/")
        self._http = _http(self.url, token)
        self._patience = patience
        self._has_answered = False

    async def close(self) -> None:
        await self._http.aclose()

    async def get(self, path: str, *, wait: float = 0.0, **params: str | int | float | bool | None) -> Any:
        if wait:
            params["wait"] = wait
        return await self.ask("GET", path, params=params, wait=wait)

    async def ask(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Any = None,
        key: str | None = None,
        is_repeatable: bool | None = None,
        wait: float = 0.0,
    ) -> Any:
        """The answer's JSON. See `answer`."""
        response = await self.answer(
            method, path, params=params, body=body, key=key, is_repeatable=is_repeatable, wait=wait
        )
        return _json(response) if response.content else None

    async def answer(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Any = None,
        content: bytes | None = None,
        media_type: str | None = None,
        key: str | None = None,
        is_repeatable: bool | None = None,
        wait: float = 0.0,
    ) -> httpx2.Response:
        """A whole answer, of whatever type. `content` is sent as it is, instead of a `body` as JSON.

        Sent again after a cut only if that does the thing once: reads and what has a `key`, or as `is_repeatable` says.
        """
        is_safe = method == "GET" or key is not None if is_repeatable is None else is_repeatable
        pauses = Pauses(self._patience)
        while True:
            request = self._request(
                method,
                path,
                params=params,
                body=body,
                content=content,
                headers={
                    **({} if key is None else {"Idempotency-Key": key}),
                    **({} if media_type is None else {"Content-Type": media_type}),
                },
                seconds=_ANSWER_SECONDS + wait,
            )
            try:
                response = await self._http.send(request)
            except httpx2.TransportError as exc:
                failure, asked_for = self._unreachable(exc), 0.0
                may_repeat = self._has_answered if isinstance(exc, _NOT_CONNECTED) else is_safe
            else:
                self._has_answered = True
                if response.is_success:
                    return response
                failure, asked_for = error_of(response), retry_after(response)
                may_repeat = is_safe and response.status_code in (502, 503, 504)
            if not (may_repeat and await pauses.next(at_least=asked_for)):
                raise failure

    async def follow(
        self,
        path: str,
        *,
        params: Params | Callable[[], Params] | None = None,
        position: Callable[[], str | None],
    ) -> AsyncGenerator[ServerSentEvent]:
        """The frames of a stream, over as many connections as it takes. Close it when you leave early.

        Each connection goes on after `position()`, with `params` as they are then. It ends when the server says that
        the thing is gone, if it was there before; a stream that ends in any other way is picked up again.
        """
        pauses = Pauses(self._patience)
        was_open = False
        while True:
            last = position()
            headers = {"Accept": _MEDIA_TYPE} if last is None else {"Accept": _MEDIA_TYPE, "Last-Event-ID": last}
            failure: OutlastError = Unreachable("The server ended the stream again and again: try later.")
            asked_for = 0.0
            opened = float("inf")
            try:
                async with self._stream(path, params() if callable(params) else params, headers) as response:
                    self._has_answered = True
                    if not response.is_success:
                        await response.aread()
                        failure, asked_for = error_of(response), retry_after(response)
                        if was_open and isinstance(failure, NotFound):
                            return
                        if response.status_code not in _TRY_LATER:
                            raise failure
                    else:
                        if not (was_open or _is_stream(response)):
                            raise _not_here(response)
                        was_open, opened = True, monotonic()
                        async with aclosing(_frames(response)) as frames:
                            async for frame in frames:
                                pauses.reset()
                                yield frame
            except httpx2.TransportError as exc:
                failure = self._unreachable(exc)
                if isinstance(exc, _NOT_CONNECTED) and not self._has_answered:
                    raise failure from exc
            if monotonic() - opened > _STEADY_SECONDS:
                pauses.reset()
            if not await pauses.next(at_least=asked_for):
                raise failure

    @asynccontextmanager
    async def _stream(
        self, path: str, params: Params | None, headers: Mapping[str, str]
    ) -> AsyncGenerator[httpx2.Response]:
        request = self._http.build_request(
            "GET", path, params=_given(params), headers=headers, timeout=_SILENCE_SECONDS
        )
        try:
            async with asyncio.timeout(_BEGIN_SECONDS):
                response = await self._http.send(request, stream=True)
        except TimeoutError as exc:
            raise httpx2.ReadTimeout("no answer", request=request) from exc
        try:
            yield response
        finally:
            await response.aclose()

    def _request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None,
        body: Any,
        headers: Mapping[str, str],
        seconds: float,
        content: bytes | None = None,
    ) -> httpx2.Request:
        try:
            return self._http.build_request(
                method, path, params=_given(params), json=body, content=content, headers=headers, timeout=seconds
            )
        except (UnicodeError, TypeError, ValueError) as exc:
            raise InvalidInput(f"This cannot be sent: {exc}") from exc

    def _unreachable(self, exc: httpx2.TransportError) -> Unreachable:
        error = Unreachable(f"The server at {self.url} does not answer ({type(exc).__name__}): is it running?")
        error.__cause__ = exc
        return error


def path(*parts: str) -> str:
    """A path below /v1. An id stays one part of it: what could lead elsewhere is no id of anything."""
    for each in parts:
        if each in ("", ".", "..") or "/" in each:
            raise NotFound(f"{each!r} is not an id.")
    return "/".join(["/v1", *(quote(each, safe="", errors="replace") for each in parts)])


def _http(url: str, token: str | None) -> httpx2.AsyncClient:
    """A server on this machine is reached directly, whatever the environment says of proxies."""
    place = urlsplit(url)
    if place.scheme not in ("http", "https") or not place.hostname:
        raise InvalidInput(f"{url!r} is not the address of a server, such as http://127.0.0.1:8000.")
    if token is not None and not (token.isascii() and token.isprintable()):
        raise InvalidInput("The token holds characters that no token has.")
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    is_local = place.hostname in ("localhost", "127.0.0.1", "::1")
    try:
        return httpx2.AsyncClient(base_url=url, headers=headers, limits=_LIMITS, trust_env=not is_local)
    except httpx2.InvalidURL as exc:
        raise InvalidInput(f"{url!r} is not the address of a server: {exc}") from exc


def _json(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except ValueError as exc:
        raise _not_here(response) from exc


def _not_here(response: httpx2.Response) -> ServerFault:
    """Something else answers, such as the app under a path of which the server is mounted."""
    place = response.headers.get("Location")
    elsewhere = "" if place is None else f", which points to {place}"
    return ServerFault(
        f"No Outlast answers at {response.url}{elsewhere}: is the address right, is a path missing?",
        status=response.status_code,
        code=None,
    )


def error_of(response: httpx2.Response) -> OutlastError:
    """The error that the server's problem stands for, of the same class as in the library."""
    try:
        found: Any = response.json()
    except ValueError:
        found = None
    status = response.status_code
    if not isinstance(found, dict) or not isinstance(cast(dict[str, Any], found).get("code"), str):
        if response.is_redirect or status in _NO_SUCH_ROUTE:
            return _not_here(response)
        return ServerFault(f"The server answered {status} without saying why.", status=status, code=None)
    problem = cast(dict[str, Any], found)
    code, message = (
        problem["code"],
        str(problem.get("detail") or problem.get("title") or f"The server answered {status}."),
    )
    details = {name: value for name, value in problem.items() if name not in ("type", "title", "detail", "code")}
    for each in _errors(OutlastError):
        if each.code == code:
            return each(message, **details)
    return ServerFault(message, **details, code=code)


def retry_after(response: httpx2.Response) -> float:
    """The seconds that the server asks to wait before another try."""
    said = response.headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() else 0.0


def _is_stream(response: httpx2.Response) -> bool:
    return response.headers.get("Content-Type", "").startswith(_MEDIA_TYPE)


def _frames(response: httpx2.Response) -> AsyncGenerator[ServerSentEvent]:
    return cast(AsyncGenerator[ServerSentEvent], aiter(EventSource(response, max_event_size=None)))


def _errors(kind: type[OutlastError]) -> Iterator[type[OutlastError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _errors(each)


def _given(params: Params | None) -> dict[str, str | int | float | bool]:
    return {name: value for name, value in (params or {}).items() if value is not None}
