"""Requests to an app whose runtime does not run: mounted in another app, and nobody has entered it."""

from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from outlast.api import problems
from outlast.errors import NotStarted
from outlast.runtime import Outlast

_ANSWERED_ANYWAY = ("/healthz", "/openapi.json")


class OnlyWhileRunning:
    """ASGI middleware: says so, before anybody is asked for a key that nobody could look up."""

    def __init__(self, app: ASGIApp, *, runtime: Outlast[Any, Any]) -> None:
        self._app = app
        self._runtime = runtime

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_refused = scope["type"] == "http" and not self._runtime.is_running
        if is_refused and not scope["path"].endswith(_ANSWERED_ANYWAY):
            error = NotStarted(
                "Outlast is not running. An app that is mounted in another one is not started by itself: "
                "write `async with outlast:` in the lifespan of that one."
            )
            await problems.response_of(error)(scope, receive, send)
        else:
            await self._app(scope, receive, send)
