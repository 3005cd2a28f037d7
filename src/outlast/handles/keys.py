"""API keys: made, found by their text, listed and revoked. The text is shown once and is not stored."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import get_args

import sqlalchemy as sa
import structlog

from outlast import ids, paging
from outlast.clock import Clock
from outlast.errors import InvalidInput, NotFound, StoreUnavailable, Unauthenticated
from outlast.events.signals import Signals, key_topic
from outlast.ids import KeyId
from outlast.paging import Page
from outlast.store.database import Database, retry_while_unavailable
from outlast.store.repositories import keys
from outlast.store.repositories.keys import Key, Role, Scope
from outlast.store.unit import Unit

log = structlog.get_logger("outlast.owners")

LOOK_EVERY = timedelta(minutes=1)
"""How long an open stream trusts that it would have heard of the end of its key."""
USED_EVERY = timedelta(minutes=1)
"""How exact `used_at` is: a key that is used all the time costs a write a minute."""
_MOST_CHARACTERS = 200
_TEXT = re.compile(r"olk_([0-9a-z]{26})_([0-9a-f]{64})")
_NO_HASH = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of all owners: for whoever may open the door to others."""

    database: Database
    clock: Clock
    signals: Signals

    async def make(
        self,
        owner_id: str,
        name: str,
        *,
        role: Role = "user",
        scope: Scope = "write",
        expires_in: timedelta | None = None,
        made_with: KeyId | None = None,
    ) -> tuple[Key, str]:
        """A new key, and its text: it is not stored, so keep it now. `name` says to people what it is for.

        `made_with`: the key that whoever gets this one has shown. The new one ends with it, and is not made when
        that one has ended (`Unauthenticated`).
        """
        _check_name("owner_id", owner_id)
        _check_name("name", name)
        if role not in get_args(Role):
            raise InvalidInput(f"role={role!r} is not known: use {' or '.join(get_args(Role))}.")
        if scope not in get_args(Scope):
            raise InvalidInput(f"scope={scope!r} is not known: use {' or '.join(get_args(Scope))}.")
        if expires_in is not None and expires_in <= timedelta():
            raise InvalidInput("A key must expire in the future: give a longer expires_in, or None for no end.")
        key_id, secret = ids.key_id(), secrets.token_hex(32)

        def make(unit: Unit) -> Key:
            expires_at = None if expires_in is None else unit.now + expires_in
            if made_with is not None:
                expires_at = _not_after(expires_at, _still_open(unit, made_with))
            return keys.insert(
                unit,
                key_id,
                owner_id=owner_id,
                name=name,
                role=role,
                scope=scope,
                hash_=_hash(secret),
                expires_at=expires_at,
                made_with=made_with,
            )

        key = await self.database.transaction(make, name="key.make")
        return key, f"olk_{key_id.removeprefix('key_')}_{secret}"

    async def find(self, text: str) -> Key | None:
        """The key with this text if it opens anything now; None for a wrong, revoked or expired one."""
        parts = _TEXT.fullmatch(text)
        key_id, secret = (f"key_{parts[1]}", parts[2]) if parts is not None else ("", "")
        found = await self.database.read(lambda connection: keys.find(connection, key_id), is_single=True)
        # Compared also when there is no such key: how long the answer takes does not tell which ids exist.
        is_right = hmac.compare_digest(_hash(secret), _NO_HASH if found is None else found[1])
        if parts is None or found is None or not is_right or not found[0].is_valid(self.clock.now()):
            return None
        return await self._used(found[0])

    async def list(self, owner_id: str | None = None, *, limit: int = 100, before: str | None = None) -> Sequence[Key]:
        """Newest first, of one owner or of all, revoked ones too; `before` is the id of the last one seen."""
        return (await self.page(owner_id, limit=limit, before=before)).items

    async def page(self, owner_id: str | None = None, *, limit: int = 100, before: str | None = None) -> Page[Key]:
        """The same with the cursor for the next page: give it as `before`."""
        most = paging.clamp(limit)

        def read(connection: sa.Connection) -> list[Key]:
            return keys.page(connection, owner_id, limit=most + 1, before=before)

        found = await self.database.read(read)
        return Page(found[:most], found[most - 1].id if len(found) > most else None)

    async def revoke(self, key_id: KeyId | str, *, owner_id: str | None = None) -> Key:
        """The key opens nothing from now on; to revoke it again changes nothing. `owner_id`: only if it is theirs.

        With it ends what was made with it, a browser's cookie for one, and every stream that any of them opened.
        """

        def revoke(unit: Unit) -> Key:
            found = _owned(unit.connection, key_id, owner_id)
            for each in keys.revoke(unit, found.id):
                unit.signal(key_topic(each))
            return _owned(unit.connection, key_id, owner_id)

        return await self.database.transaction(revoke, name="key.revoke")

    async def ended(self, key_id: KeyId, expires_at: datetime | None) -> None:
        """Returns when a key that was valid opens nothing any more."""
        heard = self.signals.subscribe(key_topic(key_id))
        while True:
            left = LOOK_EVERY if expires_at is None else min(LOOK_EVERY, expires_at - self.clock.now())
            await heard.wait(max(0.0, left.total_seconds()))
            found = await retry_while_unavailable(
                lambda: self.database.glance(lambda connection: keys.find(connection, key_id))
            )
            if found is None or not found[0].is_valid(self.clock.now()):
                return

    async def _used(self, key: Key) -> Key:
        if key.used_at is not None and self.clock.now() - key.used_at < USED_EVERY:
            return key
        try:
            await self.database.transaction(lambda unit: keys.mark_used(unit, key.id), name="key.used")
        except StoreUnavailable as exc:
            # Whoever only reads must not be kept out by a disk that is full.
            log.warning("the use of a key was not written down", key_id=key.id, error=str(exc))
        return key


def _owned(connection: sa.Connection, key_id: str, owner_id: str | None) -> Key:
    found = keys.find(connection, key_id)
    if found is None or (owner_id is not None and found[0].owner_id != owner_id):
        raise NotFound("There is no such key.", id=key_id)
    return found[0]


def _still_open(unit: Unit, key_id: KeyId) -> datetime | None:
    """When a key ends that has not ended."""
    found = keys.lock(unit, key_id)
    if found is None or not found.is_valid(unit.now):
        raise Unauthenticated("What this was made with was revoked or has expired: ask for a new one.")
    return found.expires_at


def _not_after(asked: datetime | None, latest: datetime | None) -> datetime | None:
    return min((each for each in (asked, latest) if each is not None), default=None)


def _hash(secret: str) -> str:
    """The secret has 256 random bits: no guessing gets anywhere, so it needs no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _check_name(what: str, value: str) -> None:
    if not value.strip() or len(value) > _MOST_CHARACTERS or not value.isprintable():
        raise InvalidInput(f"{what} must be 1 to {_MOST_CHARACTERS} printable characters.")
