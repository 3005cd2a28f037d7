"""Errors on the wire: RFC 9457 problems with stable codes. Clients never see internals; logs see everything."""

from collections.abc import Mapping
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

from outlast import ids
from outlast.errors import OutlastError
from outlast.values.redact import error_chain

log = structlog.get_logger("outlast.api")

MEDIA_TYPE = "application/problem+json"
STATUS: Mapping[str, int] = {
    "invalid_input": 422,
    "malformed": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "conflict": 409,
    "idempotency_mismatch": 409,
    "session_busy": 409,
    "no_encryption_key": 409,
    "body_too_large": 413,
    "head_too_large": 431,
    "inbox_full": 429,
    "too_many_tasks": 429,
    "too_many_requests": 429,
    "limit_reached": 429,
    "not_reached": 502,
    "store_unavailable": 503,
    "no_workers": 503,
    "no_server_key": 503,
    "not_started": 503,
}
_CODES = {
    400: "malformed",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    413: "body_too_large",
    429: "too_many_requests",
}
_TITLES = {
    "invalid_input": "The request cannot be accepted",
    "malformed": "The request cannot be read",
    "unauthenticated": "Who is asking?",
    "forbidden": "Not allowed",
    "not_found": "Not found",
    "method_not_allowed": "Not possible here",
    "request_timeout": "The request did not arrive in time",
    "conflict": "Not possible now",
    "idempotency_mismatch": "The key was used for something else",
    "session_busy": "The session is busy",
    "no_encryption_key": "No encryption key is set",
    "body_too_large": "The request is too large",
    "head_too_large": "The head of the request is too large",
    "inbox_full": "The inbox is full",
    "too_many_tasks": "The session has too many open tasks",
    "too_many_requests": "Too many requests",
    "limit_reached": "The limit is reached",
    "not_reached": "No answer from elsewhere",
    "store_unavailable": "The database is not available",
    "no_workers": "Nobody is there to run work",
    "no_server_key": "No server key is set",
    "not_started": "It is not running",
    "internal_error": "Something went wrong in the server",
}
_TELLING = (
    *("retry_after", "reset_at", "limit", "state", "open", "percent", "errors", "reference"),
    *("removed_at", "setting"),
)
"""What of an error's details a client is told. Never an id: an unknown one and another owner's look the same."""


class Problem(BaseModel):
    """An error, as RFC 9457 has it. `code` is stable; `detail` says what to do next."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:outlast:problem:not_found",
                    "title": "Not found",
                    "status": 404,
                    "detail": "There is no such session.",
                    "code": "not_found",
                }
            ]
        },
    )

    type: str
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    code: str


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems of a route, for its OpenAPI."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": _title_of(status), "content": content} for status in sorted(statuses)}


def response_of(error: OutlastError) -> Response:
    status = STATUS.get(error.code, 500)
    details = {name: error.details[name] for name in _TELLING if error.details.get(name) is not None}
    headers: dict[str, str] = {}
    if status in (429, 503):
        headers["Retry-After"] = str(max(1, round(float(error.details.get("retry_after", 1)))))
    if error.details.get("is_closing"):
        headers["Connection"] = "close"
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return _response(status, error.code, error.message, details, headers)


def install(app: FastAPI) -> None:
    """Give the app its error answers, and its OpenAPI their form."""
    describe = app.openapi

    def with_problem() -> dict[str, Any]:
        document = describe()
        document.setdefault("components", {}).setdefault("schemas", {})["Problem"] = Problem.model_json_schema()
        return document

    app.openapi = with_problem
    app.add_exception_handler(OutlastError, _known)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


async def _known(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, OutlastError)
    if exc.code not in STATUS:
        return await _unexpected(request, exc)
    return response_of(exc)


async def _invalid(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, RequestValidationError)
    is_json = "json" in request.headers.get("content-type", "")
    errors = [_wrong(each, is_json) for each in exc.errors()[:20]]
    first = errors[0] if errors else {"where": "request", "what": "is not valid"}
    detail = f"{first['where']}: {first['what']}."
    return _response(422, "invalid_input", detail, {"errors": errors}, {})


def _wrong(error: Mapping[str, Any], is_json: bool) -> dict[str, str]:
    where, what = [str(step) for step in error["loc"]], error["msg"]
    if error["type"] == "json_invalid":
        where, what = where[:1], f"is no JSON: {error['ctx']['error']} at character {where[-1]}"
    elif where == ["body"] and not is_json:
        what = "is read as JSON only with the header Content-Type: application/json"
    return {"where": ".".join(where), "what": what}


async def _http(_: Request, exc: Exception) -> Response:
    """What the framework itself refuses: no such path, method or body."""
    assert isinstance(exc, HTTPException)
    code = _CODES.get(exc.status_code, "malformed" if exc.status_code < 500 else "internal_error")
    return _response(exc.status_code, code, str(exc.detail), {}, dict(exc.headers or {}))


async def _unexpected(request: Request, exc: Exception) -> Response:
    reference = ids.reference_id()
    log.error(
        "a request failed",
        reference=reference,
        method=request.method,
        path=request.url.path,
        exception=error_chain(exc),
    )
    detail = f"It was logged as {reference}. What was accepted before is kept; try again."
    return _response(500, "internal_error", detail, {"reference": reference}, {})


def _response(status: int, code: str, detail: str, details: Mapping[str, Any], headers: Mapping[str, str]) -> Response:
    problem = {
        "type": f"urn:outlast:problem:{code}",
        "title": _TITLES[code],
        "status": status,
        "detail": detail,
        "code": code,
        **details,
    }
    return Response(to_json(problem), status_code=status, media_type=MEDIA_TYPE, headers=dict(headers))


def _title_of(status: int) -> str:
    return " / ".join(_TITLES[code] for code, each in STATUS.items() if each == status)
