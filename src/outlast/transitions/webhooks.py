"""Webhooks are made, changed and switched off; their deliveries are taken, sent again and ended."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic_core import to_json

from outlast import ids
from outlast.clock import to_microseconds
from outlast.errors import Conflict, InvalidInput, NotFound, TooManyRequests
from outlast.ids import OwnerId, WebhookId
from outlast.store.repositories import deliveries, webhooks
from outlast.store.repositories.deliveries import Delivery
from outlast.store.repositories.webhooks import WebhookRow, types_as_stored
from outlast.store.told_outside import OUTSIDE, RETRIED_FOR, TEST
from outlast.store.unit import Unit

MOST_PER_OWNER = 20
BOTH_SIGN = timedelta(hours=24)
"""How long the secret before the last one signs too."""
OFF_AFTER = timedelta(days=5)
"""A webhook that has failed for so long without a success is switched off."""
LEASE = timedelta(seconds=60)
"""After this, another process may send what one has taken and not ended: longer than any sending."""
GONE = 410
_MOST_LOGGED = 20
_WAITS = [timedelta(seconds=seconds) for seconds in (5, 30, 120, 600, 1800, 3600, 7200, 14_400)]
_NONE = "There is no such webhook."


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of sending a delivery once. `status` None: there was no answer, `error` says why."""

    status: int | None
    error: str | None
    milliseconds: int

    @property
    def is_delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def check_types(types: Sequence[str] | None) -> None:
    known = sorted(each.value for each in OUTSIDE)
    unknown = sorted(set(types or ()) - set(known))
    if unknown:
        raise InvalidInput(f"Webhooks are not told of {', '.join(unknown)}: choose from {', '.join(known)}.")
    if types is not None and not types:
        raise InvalidInput("Name at least one type of event, or leave the types out for all of them.")


def make(
    unit: Unit, owner_id: OwnerId, webhook_id: WebhookId, *, url: str, types: Sequence[str] | None, **values: Any
) -> None:
    if webhooks.count(unit.connection, owner_id) >= MOST_PER_OWNER:
        raise TooManyRequests(f"There are {MOST_PER_OWNER} webhooks already: remove one first.")
    webhooks.add(unit, webhook_id, owner_id, url=url, types=types_as_stored(types), **values)


def found(unit: Unit, owner_id: OwnerId, webhook_id: str) -> WebhookRow:
    """Locked. Another owner's and an unknown one raise the same `NotFound`."""
    row = webhooks.lock(unit, webhook_id)
    if row is None or row.owner_id != owner_id:
        raise NotFound(_NONE)
    return row


def change(unit: Unit, owner_id: OwnerId, webhook_id: str, **values: Any) -> None:
    """Also switches on what was off: then the time of its failures begins anew."""
    row = found(unit, owner_id, webhook_id)
    if "types" in values:
        values["types"] = types_as_stored(values["types"])
    if values.get("state") == "active":
        values |= {"off_reason": None, "failing_since": None}
    elif values.get("state") == "off":
        values["off_reason"] = "switched off by its owner"
    webhooks.change(unit, row.id, **values)


def rotate(unit: Unit, owner_id: OwnerId, webhook_id: str, *, sealed: str, key_mark: str) -> None:
    """A new secret; the one before signs too for a day, so that receivers can change over."""
    row = found(unit, owner_id, webhook_id)
    until = to_microseconds(unit.now + BOTH_SIGN)
    before = {"sealed_before": row.sealed, "before_until": until}
    webhooks.change(unit, row.id, sealed=sealed, key_mark=key_mark, **before)


def remove(unit: Unit, owner_id: OwnerId, webhook_id: str) -> None:
    webhooks.remove(unit, found(unit, owner_id, webhook_id).id)


def try_out(unit: Unit, owner_id: OwnerId, webhook_id: str) -> str:
    """Send it a message that tells of nothing; gives the id of the delivery."""
    row = found(unit, owner_id, webhook_id)
    if row.state != "active":
        raise Conflict("It is switched off: switch it on first.")
    return deliveries.add(unit, row.id, owner_id, TEST, {"webhook_id": row.id}, until=timedelta(minutes=5))


def take(unit: Unit, webhook_id: WebhookId, *, limit: int) -> Sequence[Delivery]:
    """What is to be sent now. Until the lease is over nobody else takes it; then whoever took it is dead."""
    taken: list[Delivery] = []
    again = to_microseconds(unit.now + LEASE)
    for each in deliveries.due(unit, webhook_id, limit=limit):
        if deliveries.change(unit, each, attempts=each.attempts + 1, due_at=again):
            taken.append(each)
    return taken


def give_back(unit: Unit, sent: Delivery) -> None:
    """Whoever took it leaves: it is due again, if nobody else has it."""
    taken = deliveries.find(unit.connection, sent.webhook_id, sent.session_id, sent.event)
    if taken is not None and taken.attempts == sent.attempts + 1 and taken.state == "pending":
        deliveries.change(unit, taken, due_at=unit.now_us)


def told(unit: Unit, sent: Delivery, attempt: Attempt) -> WebhookRow | None:
    """Write down what came of sending it. Gives the webhook if that switched it off."""
    row = webhooks.lock(unit, sent.webhook_id)
    taken = deliveries.find(unit.connection, sent.webhook_id, sent.session_id, sent.event)
    if row is None or taken is None or taken.attempts != sent.attempts + 1 or taken.state != "pending":
        return None  # removed, or taken by another process: that one tells
    line = {"at": unit.now, "status": attempt.status, "error": attempt.error, "milliseconds": attempt.milliseconds}
    log = to_json([*taken.log, line][-_MOST_LOGGED:]).decode()
    seen = {"status": attempt.status, "error": attempt.error, "log": log}
    if attempt.is_delivered:
        deliveries.change(unit, taken, state="delivered", ended_at=unit.now_us, **seen)
        if row.failing_since is not None:
            webhooks.mark(unit, row.id, failing_since=None)
        return None
    next_at = unit.now + _wait(taken.attempts)
    is_last = next_at > taken.until
    ended = {"state": "failed", "ended_at": unit.now_us} if is_last else {"due_at": to_microseconds(next_at)}
    deliveries.change(unit, taken, **seen, **ended)
    return row if _fails(unit, row, attempt) else None


def _wait(attempts: int) -> timedelta:
    """Longer after each try, and never the same for two that failed together."""
    return _WAITS[min(attempts, len(_WAITS)) - 1] * random.uniform(0.9, 1.1)


def _fails(unit: Unit, row: WebhookRow, attempt: Attempt) -> bool:
    """Whether it is switched off for it."""
    since: datetime = row.failing_since or unit.now
    reason = None
    if attempt.status == GONE:
        reason = "it answered 410 Gone"
    elif unit.now - since >= OFF_AFTER:
        reason = f"it has failed since {since:%Y-%m-%d %H:%M} UTC: {attempt.error or attempt.status}"
    if reason is None:
        if row.failing_since is None:
            webhooks.mark(unit, row.id, failing_since=unit.now_us)
        return False
    if row.state == "active":
        webhooks.mark(unit, row.id, state="off", off_reason=reason, failing_since=to_microseconds(since))
    return row.state == "active"


def send_again(unit: Unit, owner_id: OwnerId, webhook_id: str, delivery_id: str) -> None:
    """Under the same id; it is tried for another day. One that is still tried is sent now."""
    row = found(unit, owner_id, webhook_id)
    place = deliveries.place_of(delivery_id)
    delivery = None if place is None else deliveries.find(unit.connection, row.id, *place)
    if delivery is None:
        raise NotFound("There is no such delivery.")
    if row.state != "active":
        raise Conflict("The webhook is switched off: switch it on first.")
    until = to_microseconds(unit.now + RETRIED_FOR)
    deliveries.change(unit, delivery, state="pending", due_at=unit.now_us, until=until, ended_at=None)


def new_id() -> WebhookId:
    return ids.webhook_id()
