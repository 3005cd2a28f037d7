"""An owner's webhooks: made, listed, changed, tried and removed, with the log of what they were told."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from outlast import paging
from outlast.clock import to_microseconds
from outlast.errors import InvalidInput, NotFound
from outlast.ids import OwnerId
from outlast.outgoing.addresses import Network, is_allowed, is_literal
from outlast.paging import Page
from outlast.store.database import Database
from outlast.store.repositories import deliveries, webhooks
from outlast.store.repositories.deliveries import Delivery, DeliveryState
from outlast.store.repositories.webhooks import WebhookRow, WebhookState
from outlast.store.unit import Unit
from outlast.tool_hints import UNSET, Unset
from outlast.transitions import webhook_secret as secret
from outlast.transitions import webhooks as moves
from outlast.values.sealing import Sealing, Unreadable

_MOST_URL = 2_000
_NONE = "There is no such webhook."


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook as it may be shown: everything but its secret."""

    id: str
    url: str
    types: Sequence[str] | None
    is_for_all: bool
    state: WebhookState
    off_reason: str | None
    failing_since: datetime | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: WebhookRow) -> "Webhook":
        names = ("id", "url", "types", "is_for_all", "state", "off_reason", "failing_since", "created_at", "updated_at")
        return cls(**{name: getattr(row, name) for name in names})


class NewWebhook(NamedTuple):
    webhook: Webhook
    secret: str
    """It signs what is sent there. It is not shown again."""


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Those of one owner. `sealing` None: no key is set, so no secret can be kept."""

    database: Database
    sealing: Sealing | None
    owner_id: OwnerId
    allowed: Sequence[Network] = ()

    async def make(self, url: str, *, types: Sequence[str] | None = None, is_for_all: bool = False) -> NewWebhook:
        """Be told of what happens, from now on. `is_for_all`: to all owners; whoever allows that has asked who may."""
        _check_url(url, self.allowed)
        moves.check_types(types)
        sealing, webhook_id, text = secret.needed(self.sealing), moves.new_id(), secret.new_secret()
        sealed = sealing.seal(text, "webhook", self.owner_id, webhook_id)

        def work(unit: Unit) -> Webhook:
            values = {"is_for_all": is_for_all, "sealed": sealed, "key_mark": sealing.key_mark}
            moves.make(unit, self.owner_id, webhook_id, url=url, types=types, **values)
            return _shown(unit, self.owner_id, webhook_id)

        return NewWebhook(await self.database.transaction(work, name="webhook.make"), text)

    async def get(self, webhook_id: str) -> Webhook:
        return Webhook.of(await self._row(webhook_id))

    async def list(self) -> Sequence[Webhook]:
        """All of them, the oldest first."""
        found = await self.database.read(partial(webhooks.of_owner, owner_id=self.owner_id))
        return [Webhook.of(each) for each in found]

    async def update(
        self,
        webhook_id: str,
        *,
        url: str | Unset = UNSET,
        types: Sequence[str] | Unset | None = UNSET,
        is_active: bool | Unset = UNSET,
    ) -> Webhook:
        """Set what is given. One that was switched off is told of what happens from then on."""
        changes: dict[str, Any] = {}
        if not isinstance(url, Unset):
            _check_url(url, self.allowed)
            changes["url"] = url
        if not isinstance(types, Unset):
            moves.check_types(types)
            changes["types"] = types
        if not isinstance(is_active, Unset):
            changes["state"] = "active" if is_active else "off"
        return await self._change(webhook_id, partial(moves.change, **changes))

    async def rotate(self, webhook_id: str) -> NewWebhook:
        """A new secret. For a day messages are signed with the one before too."""
        sealing, text = secret.needed(self.sealing), secret.new_secret()
        sealed = sealing.seal(text, "webhook", self.owner_id, webhook_id)
        work = partial(moves.rotate, sealed=sealed, key_mark=sealing.key_mark)
        return NewWebhook(await self._change(webhook_id, work), text)

    async def remove(self, webhook_id: str) -> None:
        """It is told nothing any more, and its log is gone."""
        work = partial(moves.remove, owner_id=self.owner_id, webhook_id=webhook_id)
        await self.database.transaction(work, name="webhook.remove")

    async def test(self, webhook_id: str) -> Delivery:
        """Send it a message of type `webhook.test`; gives the delivery, which is on its way."""

        def work(unit: Unit) -> str:
            return moves.try_out(unit, self.owner_id, webhook_id)

        made = await self.database.transaction(work, name="webhook.test")
        return await self.delivery(webhook_id, made)

    async def deliveries(
        self, webhook_id: str, *, state: DeliveryState | None = None, limit: int = 50, before: str | None = None
    ) -> Page[Delivery]:
        """What it was told and is to be told, newest first."""
        row, limit = await self._row(webhook_id), paging.clamp(limit)
        place = None if before is None else tuple(paging.position(before, int, str, int))
        look = partial(deliveries.page, webhook_id=row.id, state=state, before=place, limit=limit + 1)
        found = await self.database.read(look)
        last = found[limit - 1] if len(found) > limit else None
        following = None if last is None else paging.cursor(to_microseconds(last.at), last.session_id, last.event)
        return Page(found[:limit], following)

    async def delivery(self, webhook_id: str, delivery_id: str) -> Delivery:
        row, place = await self._row(webhook_id), deliveries.place_of(delivery_id)
        found = None
        if place is not None:
            look = partial(deliveries.find, webhook_id=row.id, session_id=place[0], event=place[1])
            found = await self.database.read(look)
        if found is None:
            raise NotFound("There is no such delivery.")
        return found

    async def redeliver(self, webhook_id: str, delivery_id: str) -> Delivery:
        """Send it again, under the same id: whether it had arrived or not."""
        work = partial(moves.send_again, owner_id=self.owner_id, webhook_id=webhook_id, delivery_id=delivery_id)
        await self.database.transaction(work, name="webhook.redeliver")
        return await self.delivery(webhook_id, delivery_id)

    async def _row(self, webhook_id: str) -> WebhookRow:
        look = partial(webhooks.find, webhook_id=webhook_id, owner_id=self.owner_id)
        row = await self.database.read(look)
        if row is None:
            raise NotFound(_NONE)
        return row

    async def _change(self, webhook_id: str, change: Callable[[Unit, OwnerId, str], None]) -> Webhook:
        def work(unit: Unit) -> Webhook:
            change(unit, self.owner_id, webhook_id)
            return _shown(unit, self.owner_id, webhook_id)

        return await self.database.transaction(work, name="webhook.change")


def _shown(unit: Unit, owner_id: str, webhook_id: str) -> Webhook:
    row = webhooks.find(unit.connection, webhook_id, owner_id)
    assert row is not None, "it was just written"
    return Webhook.of(row)


def _check_url(url: str, allowed: Sequence[Network]) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as exc:
        raise InvalidInput(_URL) from exc
    if parts.scheme not in ("https", "http") or not host or len(url) > _MOST_URL or not url.isprintable() or " " in url:
        raise InvalidInput(_URL)
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("A webhook's URL has no user and password in it: messages are signed instead.")
    if is_literal(host) and not is_allowed(host, allowed):
        raise InvalidInput(f"{host} is not a public address: only the operator can allow it, in allowed_networks.")


_URL = f"A webhook's URL begins with https:// or http://, names a host, and has at most {_MOST_URL} characters."
_BATCH = 100


async def rekey(database: Database, sealing: Sealing) -> tuple[int, int]:
    """Seal the secrets of all webhooks with the first key. Gives how many were moved, and how many no key opens."""
    moved, unreadable, after = 0, 0, ""
    while True:
        look = partial(webhooks.of_other_keys, key_mark=sealing.key_mark, after=after, limit=_BATCH)
        found = await database.read(look)
        if not found:
            return moved, unreadable
        for row in found:
            is_moved = await database.transaction(partial(_reseal, row=row, sealing=sealing), name="webhook.rekey")
            moved, unreadable = moved + is_moved, unreadable + (not is_moved)
        after = found[-1].id


def _reseal(unit: Unit, *, row: WebhookRow, sealing: Sealing) -> bool:
    now = webhooks.lock(unit, row.id)
    if now is None:
        return True
    try:
        texts = secret.signing(now, sealing, unit.now)
    except Unreadable:
        return False
    sealed = [sealing.seal(each, *secret.place_of(now)) for each in texts]
    before = sealed[1] if len(sealed) > 1 else None
    webhooks.mark(unit, now.id, sealed=sealed[0], sealed_before=before, key_mark=sealing.key_mark)
    return True
