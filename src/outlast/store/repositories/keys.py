"""Keys: one row for each API key. The hash of its secret never leaves this module's `find`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import sqlalchemy as sa

from outlast.clock import from_microseconds, to_microseconds
from outlast.ids import KeyId, OwnerId
from outlast.store.sql.statement import Row, Statement
from outlast.store.tables import keys
from outlast.store.unit import Unit

Role = Literal["user", "admin"]
Scope = Literal["read", "propose", "write"]
"""`propose`: as `write`, but approvals are not decided with it."""


@dataclass(frozen=True, slots=True)
class Key:
    """An API key as it may be shown: everything but its secret."""

    id: KeyId
    owner_id: OwnerId
    name: str
    role: Role
    scope: Scope
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    """About when it was last used: written at most once a minute."""
    revoked_at: datetime | None
    made_with: KeyId | None = None
    """The key that whoever got this one had shown: this one ends with it."""

    def is_valid(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def from_row(row: Row) -> Key:
    return Key(
        id=KeyId(row["id"]),
        owner_id=OwnerId(row["owner_id"]),
        name=row["name"],
        role=row["role"],
        scope=row["scope"],
        created_at=from_microseconds(row["created_at"]),
        expires_at=_instant(row["expires_at"]),
        used_at=_instant(row["used_at"]),
        revoked_at=_instant(row["revoked_at"]),
        made_with=row["made_with"],
    )


def _instant(value: int | None) -> datetime | None:
    return None if value is None else from_microseconds(value)


_FIND = Statement(sa.select(keys).where(keys.c.id == sa.bindparam("id")))


def insert(
    unit: Unit,
    key_id: KeyId,
    *,
    owner_id: str,
    name: str,
    role: Role,
    scope: Scope,
    hash_: str,
    expires_at: datetime | None,
    made_with: KeyId | None = None,
) -> Key:
    values = {
        "id": key_id,
        "owner_id": owner_id,
        "name": name,
        "role": role,
        "scope": scope,
        "hash": hash_,
        "created_at": unit.now_us,
        "expires_at": None if expires_at is None else to_microseconds(expires_at),
        "made_with": made_with,
    }
    unit.connection.execute(sa.insert(keys).values(values))
    return Key(key_id, OwnerId(owner_id), name, role, scope, unit.now, expires_at, None, None, made_with)


def find(connection: sa.Connection, key_id: str) -> tuple[Key, str] | None:
    """A key and the hash of its secret."""
    row = _FIND.first(connection, id=key_id)
    return None if row is None else (from_row(row), row["hash"])


def lock(unit: Unit, key_id: str) -> Key | None:
    """A key that nobody revokes before the commit: what is made with it now is seen by whoever revokes it then."""
    row = unit.connection.execute(sa.select(keys).where(keys.c.id == key_id).with_for_update()).mappings().first()
    return None if row is None else from_row(row)


def page(connection: sa.Connection, owner_id: str | None, *, limit: int, before: str | None = None) -> list[Key]:
    """Newest first, of one owner or of all; `before` is the id of the last one already seen."""
    query = sa.select(keys).order_by(keys.c.id.desc()).limit(limit)
    if owner_id is not None:
        query = query.where(keys.c.owner_id == owner_id)
    if before is not None:
        query = query.where(keys.c.id < before)
    return [from_row(row) for row in connection.execute(query).mappings()]


def revoke(unit: Unit, key_id: str) -> list[KeyId]:
    """From the commit on the key opens nothing, nor does any that was made with it, or with one of those.

    Gives the ids of all that ended now. The first time counts.
    """
    now_ended = sa.select(keys.c.id).where(keys.c.revoked_at == unit.now_us).scalar_subquery()
    ended = _end(unit, keys.c.id == key_id)
    newly = ended
    while newly:  # a statement for each generation: it sees what was made while the one before waited for a lock
        newly = _end(unit, keys.c.made_with.in_(now_ended))
        ended = [*ended, *newly]
    return ended


def _end(unit: Unit, which: sa.ColumnElement[bool]) -> list[KeyId]:
    change = sa.update(keys).where(which, keys.c.revoked_at.is_(None)).values(revoked_at=unit.now_us)
    return [KeyId(each) for each in unit.connection.execute(change.returning(keys.c.id)).scalars()]


def mark_used(unit: Unit, key_id: str) -> None:
    unit.connection.execute(sa.update(keys).where(keys.c.id == key_id).values(used_at=unit.now_us))
