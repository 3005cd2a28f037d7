"""Connections: an owner's credentials by provider, sealed: what stands in a row is opened by others."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from outlast.clock import from_microseconds
from outlast.ids import OwnerId
from outlast.store.sql.statement import Row
from outlast.store.tables import connections
from outlast.store.unit import Unit


@dataclass(frozen=True, slots=True)
class ConnectionRow:
    owner_id: OwnerId
    provider: str
    sealed: str
    key_mark: str
    created_at: datetime
    updated_at: datetime
    """When its value was set last."""
    used_at: datetime | None
    """About when a tool asked for it last: written at most once a minute."""


def _from_row(row: Row) -> ConnectionRow:
    return ConnectionRow(
        owner_id=OwnerId(row["owner_id"]),
        provider=row["provider"],
        sealed=row["sealed"],
        key_mark=row["key_mark"],
        created_at=from_microseconds(row["created_at"]),
        updated_at=from_microseconds(row["updated_at"]),
        used_at=None if row["used_at"] is None else from_microseconds(row["used_at"]),
    )


def _one(owner_id: str, provider: str) -> sa.ColumnElement[bool]:
    return sa.and_(connections.c.owner_id == owner_id, connections.c.provider == provider)


def put(unit: Unit, owner_id: str, provider: str, *, sealed: str, key_mark: str) -> None:
    """The last one that commits is the one that counts."""
    new = {"sealed": sealed, "key_mark": key_mark, "updated_at": unit.now_us}
    values = {"owner_id": owner_id, "provider": provider, "created_at": unit.now_us, **new}
    insert = (sqlite if unit.dialect == "sqlite" else postgresql).insert(connections).values(values)
    unit.connection.execute(insert.on_conflict_do_update(index_elements=["owner_id", "provider"], set_=new))


def find(connection: sa.Connection, owner_id: str, provider: str) -> ConnectionRow | None:
    row = connection.execute(sa.select(connections).where(_one(owner_id, provider))).mappings().first()
    return None if row is None else _from_row(row)


def of_owner(connection: sa.Connection, owner_id: str, *, limit: int) -> Sequence[ConnectionRow]:
    """By provider."""
    query = sa.select(connections).where(connections.c.owner_id == owner_id).order_by(connections.c.provider)
    return [_from_row(row) for row in connection.execute(query.limit(limit)).mappings()]


def count(connection: sa.Connection, owner_id: str) -> int:
    query = sa.select(sa.func.count()).select_from(connections).where(connections.c.owner_id == owner_id)
    return connection.execute(query).scalar_one()


def remove(unit: Unit, owner_id: str, provider: str) -> bool:
    return unit.connection.execute(sa.delete(connections).where(_one(owner_id, provider))).rowcount > 0


def mark_used(unit: Unit, owner_id: str, provider: str) -> None:
    unit.connection.execute(sa.update(connections).where(_one(owner_id, provider)).values(used_at=unit.now_us))


def of_other_keys(
    connection: sa.Connection, key_mark: str, *, after: tuple[str, str], limit: int
) -> Sequence[ConnectionRow]:
    """Those of all owners that another key sealed, in one order, after an owner and a provider."""
    place = sa.tuple_(connections.c.owner_id, connections.c.provider)
    query = sa.select(connections).where(connections.c.key_mark != key_mark, place > sa.tuple_(*map(sa.literal, after)))
    rows = connection.execute(query.order_by(connections.c.owner_id, connections.c.provider).limit(limit))
    return [_from_row(row) for row in rows.mappings()]


def reseal(unit: Unit, row: ConnectionRow, *, sealed: str, key_mark: str) -> bool:
    """The same value under another key; False when it was set or removed meanwhile."""
    change = sa.update(connections).where(_one(row.owner_id, row.provider), connections.c.sealed == row.sealed)
    return unit.connection.execute(change.values(sealed=sealed, key_mark=key_mark)).rowcount > 0
