"""The secret with which messages to a webhook are signed: shown once, and kept sealed."""

import base64
import secrets
from collections.abc import Sequence
from datetime import datetime

from outlast.errors import NoEncryptionKey
from outlast.store.repositories.webhooks import WebhookRow
from outlast.values.sealing import MAKE_KEY, Sealing, Unreadable

_PREFIX = "whsec_"
_BYTES = 32


def new_secret() -> str:
    return _PREFIX + base64.b64encode(secrets.token_bytes(_BYTES)).decode()


def needed(sealing: Sealing | None) -> Sealing:
    if sealing is None:
        raise NoEncryptionKey(
            f"Secrets of webhooks are kept encrypted, and no key for that is set. Make one with `{MAKE_KEY}`, and give "
            "it to every process in OUTLAST_ENCRYPTION_KEYS."
        )
    return sealing


def place_of(row: WebhookRow) -> tuple[str, ...]:
    return ("webhook", row.owner_id, row.id)


def signing(row: WebhookRow, sealing: Sealing | None, now: datetime) -> Sequence[str]:
    """The secrets that sign now, the newest first. Raises `Unreadable` when no key opens the newest."""
    if sealing is None:
        raise Unreadable
    found = [sealing.open(row.sealed, *place_of(row))]
    if row.sealed_before is not None and row.before_until is not None and now < row.before_until:
        found.append(sealing.open(row.sealed_before, *place_of(row)))
    return found
