"""Secrets that tools registered, encrypted: one row each, numbered so that every process reads what is new."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from outlast.store.tables import kept_secrets
from outlast.store.unit import Unit


class Kept(NamedTuple):
    number: int
    value: str


def add(unit: Unit, mark: str, value: str, *, most: int) -> None:
    """`mark` is the same for the same value. Beyond `most` the oldest are forgotten."""
    known = sa.select(kept_secrets.c.number).where(kept_secrets.c.mark == mark).limit(1)
    if unit.connection.execute(known).first() is not None:
        return
    values = {"mark": mark, "value": value, "created_at": unit.now_us}
    unit.connection.execute(sa.insert(kept_secrets), values)
    newest = unit.connection.execute(sa.select(sa.func.max(kept_secrets.c.number))).scalar_one()
    unit.connection.execute(sa.delete(kept_secrets).where(kept_secrets.c.number <= newest - most))


def after(connection: sa.Connection, number: int, *, limit: int) -> Sequence[Kept]:
    """In the order in which they were registered."""
    query = sa.select(kept_secrets.c.number, kept_secrets.c.value).where(kept_secrets.c.number > number)
    return [Kept(*row) for row in connection.execute(query.order_by(kept_secrets.c.number).limit(limit))]
