"""Answers are sent compressed to whoever takes that. Streams are not, and neither are files: they have ranges."""

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

_LEAST_BYTES = 4_096
"""Shorter ones fit a packet or three, and compressing them takes longer than sending them."""
_LEVEL = 4
_FILES = ("/v1/files/", "/output/text")


class Compressed:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._compressed = GZipMiddleware(app, minimum_size=_LEAST_BYTES, compresslevel=_LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_file = scope["type"] != "http" or any(each in scope["path"] for each in _FILES)
        await (self._app if is_file else self._compressed)(scope, receive, send)
