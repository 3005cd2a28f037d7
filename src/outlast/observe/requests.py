"""Each request counted, logged and traced: ASGI middleware around the whole app."""

from urllib.parse import parse_qsl, urlencode

import structlog
from opentelemetry import trace
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outlast.clock import monotonic
from outlast.observe.metrics import Metrics
from outlast.values.sparse import Sparse

log = structlog.get_logger("outlast.requests")

_TOKEN = "token"
_REDACTED = "REDACTED"
"""As FastAPI writes it in the place of signatures that it knows."""


class ObservedRequests:
    """Streams count until they end; their time is the time until they begin."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, is_logged: bool) -> None:
        self._app = app
        self._metrics = metrics
        self._is_logged = is_logged
        self._refused = Sparse()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, first = monotonic(), 500, 0.0

        async def sending(message: Message) -> None:
            nonlocal status, first
            if message["type"] == "http.response.start":
                status, first = message["status"], monotonic() - began
            await send(message)

        self._metrics.open_requests.inc()
        try:
            await self._app(scope, receive, sending)
        finally:
            self._ended(scope, status, first, monotonic() - began)

    def _ended(self, scope: Scope, status: int, first: float, seconds: float) -> None:
        method, route = scope["method"], _route(scope)
        self._metrics.open_requests.dec()
        self._metrics.requests.labels(method, route, str(status)).inc()
        self._metrics.request_seconds.labels(route).observe(first)
        if self._is_logged and (left_out := self._left_out(route, status)) is not None:
            more = {"left_out": left_out} if left_out else {}
            log.info(
                "request", method=method, route=route, status=status, seconds=round(seconds, 4), **_ids(scope), **more
            )

    def _left_out(self, route: str, status: int) -> int | None:
        """Of what is refused, a few lines are enough: strangers choose how often that is."""
        return self._refused.left_out((route, status)) if 400 <= status < 500 else 0


def _route(scope: Scope) -> str:
    """The pattern, never the path itself: paths have ids in them, and strangers choose them."""
    pattern: str | None = getattr(scope.get("route"), "path", None)
    if pattern is None:
        return "(none)"
    # What was mounted or included above the route's own pattern has no ids in it.
    above = scope["path"].count("/") - pattern.count("/")
    return "/".join(scope["path"].split("/")[: above + 1]) + pattern


def _ids(scope: Scope) -> dict[str, str]:
    return {name: value for name, value in scope.get("path_params", {}).items() if name.endswith("_id")}


class TracedQuery:
    """Keeps tokens out of spans. The first of all middleware: the request's span, with its query, is FastAPI's."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query: bytes = scope.get("query_string", b"")
        span = trace.get_current_span()
        if query and span.is_recording():
            asked = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
            if any(name == _TOKEN for name, _ in asked):
                shown = [(name, _REDACTED if name == _TOKEN else value) for name, value in asked]
                span.set_attribute("url.query", urlencode(shown))
        await self._app(scope, receive, send)
