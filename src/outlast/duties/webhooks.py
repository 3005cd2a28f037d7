"""Delivering webhooks: what is due is taken under a lease, sent, and what came of it is written down.

One that is slow or does not answer holds up only what is for itself: each webhook has few sendings at once, each owner
not many, and those that fail have some of the places only, however many they are.
A process that dies while it sends leaves its lease to run out; the message is then sent again, under the same id.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog
from pydantic_core import to_json
from standardwebhooks import Webhook as Signature

from outlast import __version__
from outlast.clock import monotonic
from outlast.errors import NotReached, StoreUnavailable
from outlast.outgoing.client import OutgoingClient
from outlast.store.database import Database
from outlast.store.repositories import webhooks
from outlast.store.repositories.deliveries import Delivery
from outlast.store.repositories.webhooks import WebhookRow
from outlast.store.unit import Unit
from outlast.transitions import webhooks as moves
from outlast.transitions.webhook_secret import signing
from outlast.transitions.webhooks import Attempt
from outlast.values.redact import error_chain
from outlast.values.sealing import Sealing, Unreadable

log = structlog.get_logger("outlast.webhooks")

EVERY = timedelta(seconds=1)
_AT_ONCE = 32
_AT_ONCE_OWNER = 8
_AT_ONCE_EACH = 4
_AT_ONCE_FAILING = 8
"""Of all that have failed and not answered since, each with one: those that answer have the other places."""
_SECONDS = 15.0
_MOST_BYTES = 1_024
"""Of an answer: it is not read, only its status counts."""


class WebhookSender:
    """Owned by the runtime, with its client."""

    def __init__(self, database: Database, client: OutgoingClient, sealing: Sealing | None) -> None:
        self._database = database
        self._client = client
        self._sealing = sealing
        self._running: dict[asyncio.Task[None], tuple[WebhookRow, Delivery]] = {}
        self._taking: asyncio.Task[None] | None = None
        self._is_closed = False

    async def send_due(self) -> None:
        """Begin to send what is due, as far as there is room."""
        for row in await self._database.transaction(_with_work, name="webhooks.due"):
            room = self._room_for(row)
            if room > 0 and not self._is_closed:
                self._taking = asyncio.create_task(self._take(row, room), name=f"take for {row.id}")
                await asyncio.shield(self._taking)  # what is taken is begun, also when the duty is ended meanwhile

    def _room_for(self, row: WebhookRow) -> int:
        """How many of its messages may be sent now beside those that are on their way."""
        running = [each for each, _ in self._running.values()]
        of_owner = sum(each.owner_id == row.owner_id for each in running)
        of_itself = sum(each.id == row.id for each in running)
        room = min(_AT_ONCE - len(running), _AT_ONCE_OWNER - of_owner, _AT_ONCE_EACH - of_itself)
        if row.failing_since is None:
            return room
        return min(room, _AT_ONCE_FAILING - sum(each.failing_since is not None for each in running), 1 - of_itself)

    async def _take(self, row: WebhookRow, room: int) -> None:
        take = partial(moves.take, webhook_id=row.id, limit=room)
        for each in await self._database.transaction(take, name="webhooks.take"):
            self._begin(row, each)

    async def close(self) -> None:
        """What is being sent is given back: the next process sends it, perhaps a second time."""
        self._is_closed = True
        if self._taking is not None:
            await asyncio.gather(self._taking, return_exceptions=True)
        running = dict(self._running)
        for each in running:
            each.cancel()
        if running:
            await asyncio.wait(running)
        for sending, (_, delivery) in running.items():
            if sending.cancelled():
                await self._give_back(delivery)
        await self._client.close()

    def _begin(self, row: WebhookRow, delivery: Delivery) -> None:
        sending = asyncio.create_task(self._deliver(row, delivery), name=f"deliver {delivery.id}")
        self._running[sending] = row, delivery
        sending.add_done_callback(self._over)

    async def _give_back(self, delivery: Delivery) -> None:
        try:
            await self._database.transaction(partial(moves.give_back, sent=delivery), name="webhook.give_back")
        except StoreUnavailable as exc:
            log.info("a delivery is left to its lease", error=str(exc))

    def _over(self, sending: asyncio.Task[None]) -> None:
        self._running.pop(sending, None)
        exc = None if sending.cancelled() else sending.exception()
        if exc is not None:
            log.error("a delivery is left to its lease", exception=error_chain(exc))

    async def _deliver(self, row: WebhookRow, delivery: Delivery) -> None:
        attempt = await self._send(row, delivery)
        tell = partial(moves.told, sent=delivery, attempt=attempt)
        switched_off = await self._database.transaction(tell, name="webhook.told")
        if switched_off is not None:
            log.warning("a webhook is switched off", webhook_id=row.id, owner_id=row.owner_id)

    async def _send(self, row: WebhookRow, delivery: Delivery) -> Attempt:
        begun = monotonic()
        try:
            content, headers = message(row, delivery, self._sealing, datetime.now(UTC))
            reply = await self._client.send(
                "POST", row.url, headers=headers, content=content, timeout=_SECONDS, most_bytes=_MOST_BYTES
            )
        except Unreadable:
            return Attempt(None, "No key of this server opens the webhook's secret: rotate it.", 0)
        except NotReached as exc:
            return Attempt(None, exc.message[:500], _milliseconds(begun))
        error = None if 200 <= reply.status < 300 else _why(reply.status)
        return Attempt(reply.status, error, _milliseconds(begun))


def _with_work(unit: Unit) -> Sequence[WebhookRow]:
    return webhooks.with_work(unit.connection, unit.now_us)


def _milliseconds(begun: float) -> int:
    return round((monotonic() - begun) * 1_000)


def _why(status: int) -> str:
    return f"It answered {status}; redirects are not followed." if 300 <= status < 400 else f"It answered {status}."


def message(
    row: WebhookRow, delivery: Delivery, sealing: Sealing | None, now: datetime
) -> tuple[bytes, dict[str, str]]:
    """The body and the headers of one try, as Standard Webhooks has them. Raises `Unreadable`."""
    body = to_json({"type": delivery.type, "timestamp": delivery.at, "data": delivery.told})
    signed = [Signature(each).sign(delivery.id, now, body.decode()) for each in signing(row, sealing, now)]
    return body, {
        "content-type": "application/json",
        "user-agent": f"Outlast/{__version__}",
        "webhook-id": delivery.id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signed),
    }
