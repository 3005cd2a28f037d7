"""Secrets that tools registered, encrypted: one row each, numbered so that every process reads what is new."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from outlast.store.tables import kept_secrets
from outlast.store.unit import Unit

_LOCK = sa.text("LOCK TABLE kept_secrets IN SHARE ROW EXCLUSIVE MODE")  # which lets others read


class Kept(NamedTuple):
    number: int
    value: str


def add(unit: Unit, rows: Iterable[tuple[str, str]], *, most: int) -> None:
    """Marks and values; a mark is the same for the same value. Beyond `most` the oldest are forgotten.

    Numbers are given by one transaction after the other: readers go on after the highest that they saw.
    """
    if not unit.is_serial:
        unit.connection.execute(_LOCK)
    for mark, value in rows:
        known = sa.select(kept_secrets.c.number).where(kept_secrets.c.mark == mark).limit(1)
        if unit.connection.execute(known).first() is None:
            values = {"mark": mark, "value": value, "created_at": unit.now_us}
            unit.connection.execute(sa.insert(kept_secrets), values)
    newest = sa.select(sa.func.max(kept_secrets.c.number)).scalar_subquery()
    unit.connection.execute(sa.delete(kept_secrets).where(kept_secrets.c.number <= newest - most))


def after(connection: sa.Connection, number: int, *, limit: int) -> Sequence[Kept]:
    """In the order in which they were registered."""
    query = sa.select(kept_secrets.c.number, kept_secrets.c.value).where(kept_secrets.c.number > number)
    return [Kept(*row) for row in connection.execute(query.order_by(kept_secrets.c.number).limit(limit))]
