"""Errors that pass by themselves: something outside was busy, unreachable or slow for a moment.

Libraries are known by their names: which of them a tool uses is its own matter, and none is imported for this.
"""

import errno
import ssl
from collections.abc import Iterator
from inspect import getattr_static
from typing import Any, cast

_PASSING = {
    **dict.fromkeys(
        ("httpx", "httpx2", "httpcore", "httpcore2"),
        frozenset({"TimeoutException", "NetworkError", "RemoteProtocolError", "ProxyError", "ConnectionNotAvailable"}),
    ),
    **dict.fromkeys(("openai", "anthropic", "groq", "cohere", "mistralai"), frozenset({"APIConnectionError"})),
    "pydantic_ai": frozenset({"ModelConnectionError", "ModelRequestTimeout", "ModelUnavailableError"}),
    "aiohttp": frozenset({"ClientConnectionError", "ClientPayloadError", "ServerTimeoutError"}),
    "requests": frozenset({"ConnectionError", "Timeout", "ChunkedEncodingError"}),
    "urllib3": frozenset({"TimeoutError", "ProtocolError", "NewConnectionError", "IncompleteRead"}),
    "http": frozenset({"RemoteDisconnected", "IncompleteRead"}),
    "google": frozenset({"TransportError", "RetryError", "DeadlineExceeded", "ServiceUnavailable"}),
    "botocore": frozenset({"HTTPClientError", "ConnectionError"}),
}
"""The classes that say so, with all that derive from them, by the package that has them."""
_STATUSES = frozenset({408, 425, 429})
_NUMBERS = frozenset(
    {
        *(errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ENETUNREACH, errno.ENETDOWN, errno.ENETRESET),
        *(errno.ECONNRESET, errno.ECONNREFUSED, errno.ECONNABORTED, errno.EPIPE, errno.EAGAIN, errno.EBUSY),
    }
)
_MOST_LINKS = 50


def is_transient(exc: BaseException) -> bool:
    """Whether it, or what it came of, is such an error. Of several at once, all must be."""
    links = list(_chain(exc))
    if any(isinstance(each, ssl.SSLCertVerificationError) for each in links):
        return False
    return any(_passes(each) for each in links)


def _chain(exc: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_MOST_LINKS):
        if exc is None:
            return
        yield exc
        exc = exc.__cause__ or (None if exc.__suppress_context__ else exc.__context__)


def _passes(exc: BaseException) -> bool:
    if isinstance(exc, BaseExceptionGroup):
        return all(is_transient(each) for each in cast("BaseExceptionGroup[BaseException]", exc).exceptions)
    if isinstance(exc, TimeoutError | ConnectionError):
        return True
    if isinstance(exc, OSError) and exc.errno in _NUMBERS:
        return True
    return _is_named(exc) or _is_status(_status_of(exc))


def _is_named(exc: BaseException) -> bool:
    return any(each.__name__ in _PASSING.get(_package(each), ()) for each in type(exc).__mro__)


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def _status_of(exc: BaseException) -> Any:
    """The HTTP status of an answer that was an error, wherever a library keeps it."""
    for name in ("status_code", "status", "code", "http_status"):
        # Not by properties: code of the error itself may fail in turn.
        if isinstance(found := getattr_static(exc, name, None), int):
            return found
    response = getattr_static(exc, "response", None)
    if isinstance(response, dict):
        meta = cast(dict[str, Any], response).get("ResponseMetadata")
        return cast(dict[str, Any], meta).get("HTTPStatusCode") if isinstance(meta, dict) else None
    return getattr_static(response, "status_code", None)


def _is_status(status: Any) -> bool:
    return isinstance(status, int) and (status in _STATUSES or 500 <= status <= 599)
