"""What one client may ask of the server: bytes in a body, requests in a minute."""

from collections import OrderedDict

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outlast.api.problems import response_of
from outlast.clock import monotonic
from outlast.errors import BodyTooLarge, TooManyRequests

_MOST_OWNERS = 10_000


class BodyLimit:
    """Refuses a body that is too large, by what it says of itself or by what really comes."""

    def __init__(self, app: ASGIApp, *, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self._max_bytes:
            await response_of(self._error())(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                # The framework reads bodies, and lets only its own kind of error through.
                raise HTTPException(413, str(self._error()))
            return message

        await self._app(scope, counted, send)

    def _error(self) -> BodyTooLarge:
        return BodyTooLarge(f"At most {self._max_bytes} bytes are read: send less, or in several requests.")


class RequestRate:
    """A bucket per owner that fills again evenly; in this process only."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, owner_id: str) -> None:
        """Count one request; raises when there were too many."""
        now = monotonic()
        left, at = self._buckets.pop(owner_id, (float(self._per_minute), now))
        left = min(float(self._per_minute), left + (now - at) * self._per_minute / 60)
        self._buckets[owner_id] = (max(0.0, left - 1), now)
        if len(self._buckets) > _MOST_OWNERS:
            self._buckets.popitem(last=False)
        if left < 1:
            raise TooManyRequests(
                f"More than {self._per_minute} requests a minute: wait a little.",
                retry_after=max(1, round((1 - left) * 60 / self._per_minute)),
            )
