"""What one client may ask of the server: bytes in a body, requests and bytes in a minute, requests at once."""

from collections import Counter, OrderedDict
from collections.abc import Generator
from contextlib import contextmanager

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


class Rate:
    """A bucket per owner that fills again evenly; in this process only."""

    def __init__(self, per_minute: int, of: str) -> None:
        self._per_minute = per_minute
        self._of = of
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, owner_id: str, amount: int = 1) -> None:
        """Count so many; raises when there were too many. More than there ever can be is let in when all is there."""
        now = monotonic()
        most = float(self._per_minute)
        left, at = self._buckets.pop(owner_id, (most, now))
        left = min(most, left + (now - at) * self._per_minute / 60)
        needed = min(float(amount), most)
        self._buckets[owner_id] = (left - needed if left >= needed else left, now)
        if len(self._buckets) > _MOST_OWNERS:
            self._buckets.popitem(last=False)
        if left < needed:
            raise TooManyRequests(
                f"More than {self._per_minute} {self._of} a minute: wait a little.",
                retry_after=max(1, round((needed - left) * 60 / self._per_minute)),
            )


class OpenRequests:
    """How many requests of an owner are open at once, streams and waits among them; in this process only."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    def check(self, owner_id: str) -> None:
        if self._open[owner_id] >= self._most:
            raise TooManyRequests(f"{self._most} requests and streams are open: close some first.", retry_after=1)

    @contextmanager
    def opened(self, owner_id: str) -> Generator[None]:
        self._open[owner_id] += 1
        try:
            yield
        finally:
            self._open[owner_id] -= 1
            if not self._open[owner_id]:
                del self._open[owner_id]
