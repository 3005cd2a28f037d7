"""Parameters that say nothing: pages build addresses from what they have, and send `after=` or `after=undefined`."""

from starlette.types import ASGIApp, Receive, Scope, Send

_BLANK = frozenset({b"", b"undefined", b"null"})
_WORDS = frozenset({b"search", b"external_id", b"agent", b"kind", b"owner_id"})
"""In these the words `undefined` and `null` may be meant; only an empty one says nothing."""


def or_none(given: str | None) -> str | None:
    """A header's value, or None if it says nothing."""
    return None if given is None or given.strip().encode() in _BLANK else given


class BlankParameters:
    """Takes query parameters that say nothing as not given, on every route."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["query_string"]:
            pairs: list[bytes] = scope["query_string"].split(b"&")
            # In place: what the routes add to a scope is read by what stands around this.
            scope["query_string"] = b"&".join(each for each in pairs if not _is_blank(each))
        await self._app(scope, receive, send)


def _is_blank(pair: bytes) -> bool:
    name, _, value = pair.partition(b"=")
    return value in _BLANK and (not value or name not in _WORDS)
