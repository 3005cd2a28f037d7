"""Which errors pass by themselves, of libraries that may or may not be installed (A10)."""

import errno
import socket
import ssl
import urllib.error
from http.client import IncompleteRead, RemoteDisconnected
from typing import Any, cast

import anthropic
import httpx2
import openai
import pytest
import requests
import urllib3
from google.genai import errors as google_errors
from pydantic_ai import ModelRetry
from pydantic_ai.exceptions import ModelHTTPError, ToolFailed

from outlast.calls.transient import is_transient

REQUEST = httpx2.Request("GET", "http://example.test")
POOL: Any = None


def named(module: str, *names: str) -> Exception:
    """An error of a package that is not here, with its classes from the base on."""
    kind: type[Exception] = Exception
    for name in names:
        kind = cast(type[Exception], type(name, (kind,), {"__module__": module}))
    return kind("trouble")


def with_status(kind: Any, status: int) -> Exception:
    return kind("trouble", response=httpx2.Response(status, request=REQUEST), body=None)


def http_status(status: int) -> httpx2.HTTPStatusError:
    return httpx2.HTTPStatusError("trouble", request=REQUEST, response=httpx2.Response(status, request=REQUEST))


def of_requests(status: int) -> requests.HTTPError:
    response = requests.Response()
    response.status_code = status
    return requests.HTTPError(response=response)


class Stated(Exception):
    """What botocore and aiohttp keep."""

    def __init__(self, **fields: Any) -> None:
        super().__init__("trouble")
        vars(self).update(fields)


def after(cause: BaseException, error: Exception) -> Exception:
    error.__cause__ = cause
    return error


def during(context: BaseException, error: Exception) -> Exception:
    error.__context__ = context
    return error


PASSING = [
    TimeoutError(),
    ConnectionResetError(),
    BrokenPipeError(),
    OSError(errno.ENETUNREACH, "no network"),
    RemoteDisconnected(""),
    IncompleteRead(b""),
    urllib.error.HTTPError("u", 503, "m", {}, None),  # pyright: ignore[reportArgumentType]
    during(ConnectionRefusedError(), urllib.error.URLError("refused")),
    httpx2.ConnectError("x"),
    httpx2.ReadTimeout("x"),
    httpx2.PoolTimeout("x"),
    httpx2.RemoteProtocolError("x"),
    *(http_status(each) for each in (408, 425, 429, 500, 502, 503, 504, 529)),
    named("httpx", "TransportError", "TimeoutException", "ConnectTimeout"),
    named("httpx._exceptions", "TransportError", "NetworkError", "ReadError"),
    named("httpcore", "NetworkError", "ConnectError"),
    openai.APIConnectionError(request=REQUEST),
    openai.APITimeoutError(request=REQUEST),
    with_status(openai.RateLimitError, 429),
    with_status(openai.InternalServerError, 500),
    anthropic.APIConnectionError(request=REQUEST),
    with_status(anthropic.RateLimitError, 429),
    google_errors.ServerError(503, {}),
    google_errors.ClientError(429, {}),
    ModelHTTPError(503, "model"),
    named("aiohttp.client_exceptions", "ClientError", "ClientConnectionError", "ClientConnectorError"),
    Stated(status=503),
    Stated(response={"ResponseMetadata": {"HTTPStatusCode": 503}}),
    named("botocore.exceptions", "BotoCoreError", "HTTPClientError", "ReadTimeoutError"),
    requests.ConnectionError(),
    requests.ReadTimeout(),
    of_requests(502),
    urllib3.exceptions.ReadTimeoutError(POOL, "u", "m"),
    urllib3.exceptions.ProtocolError("cut"),
    after(httpx2.ConnectError("x"), ToolFailed("no")),
    after(after(httpx2.ConnectError("x"), ModelRetry("again")), ValueError("x")),
    during(TimeoutError(), ValueError("x")),
    ExceptionGroup("both", [TimeoutError(), httpx2.ReadError("x")]),
]
LASTING = [
    ValueError("x"),
    FileNotFoundError(errno.ENOENT, "no file"),
    PermissionError(errno.EACCES, "no"),
    socket.gaierror(socket.EAI_NONAME, "no such name"),
    httpx2.UnsupportedProtocol("x"),
    httpx2.InvalidURL("x"),
    *(http_status(each) for each in (400, 401, 403, 404, 409, 422)),
    with_status(openai.BadRequestError, 400),
    with_status(anthropic.AuthenticationError, 401),
    google_errors.ClientError(400, {}),
    of_requests(404),
    requests.exceptions.InvalidURL(),
    named("mine", "NetworkError"),
    Stated(status="503"),
    Stated(response={"ResponseMetadata": None}),
    Stated(code=-32603),
    after(ssl.SSLCertVerificationError("expired"), httpx2.ConnectError("x")),
    ExceptionGroup("one of them", [TimeoutError(), ValueError("x")]),
]


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_what_passes_by_itself(error: Exception) -> None:
    assert is_transient(error)


@pytest.mark.parametrize("error", LASTING, ids=repr)
def test_what_stays_as_it_is(error: Exception) -> None:
    assert not is_transient(error)


def test_a_chain_that_bites_its_tail_ends() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert not is_transient(one)


def test_code_of_an_error_is_not_run() -> None:
    """A5: an error is data here."""

    class Sly(Exception):
        @property
        def status_code(self) -> int:
            raise SystemExit

    assert not is_transient(Sly())
