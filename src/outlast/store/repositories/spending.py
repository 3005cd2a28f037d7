"""Spending: what an owner's model requests came to, one row for each UTC day."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from outlast.events.outcome import Usage
from outlast.store.sql.statement import Statement
from outlast.store.tables import spending
from outlast.store.unit import Unit

_USAGE = fields(Usage)


@dataclass(frozen=True, slots=True)
class Spent:
    """What was used in some time. A cost that is not known in full is None, never a number that is too small."""

    requests: int = 0
    unpriced_requests: int = 0
    """Requests whose cost nobody could tell."""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    known_microdollars: int = 0
    """The cost of the other requests: it was at least this."""

    @property
    def cost_microdollars(self) -> int | None:
        return None if self.unpriced_requests else self.known_microdollars


_MOST = 10**12
_COUNTS = (
    "requests",
    "unpriced_requests",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cost_microdollars",
)
_COLUMNS = ("owner_id", "day", *_COUNTS)


def countable(told: Any) -> int:
    """A provider may say anything; columns take so much, and a sum of many."""
    if isinstance(told, float | Decimal):
        return round(min(max(0, told), _MOST)) if math.isfinite(told) else 0
    return min(max(0, told), _MOST) if isinstance(told, int) else 0


def add(unit: Unit, owner_id: str, usage: Mapping[str, Any]) -> None:
    """Add a model response, in the transaction that commits it."""
    cost = usage["cost_microdollars"]
    spent = Spent(
        requests=1,
        unpriced_requests=int(cost is None),
        input_tokens=usage["input_tokens"],
        output_tokens=usage["output_tokens"],
        cache_read_tokens=usage["cache_read_tokens"],
        cache_write_tokens=usage["cache_write_tokens"],
        known_microdollars=cost or 0,
    )
    add_spent(unit, owner_id, spent)


def of_response(used: Mapping[str, int | None]) -> Spent:
    """What one response took, as it is told of it."""
    cost = used["cost_microdollars"]
    tokens = {name: int(used[name] or 0) for name in used if name != "cost_microdollars"}
    return Spent(requests=1, unpriced_requests=int(cost is None), known_microdollars=cost or 0, **tokens)


def add_spent(unit: Unit, owner_id: str, spent: Spent) -> None:
    """Add what several requests came to."""
    unit.write(
        _ADD[unit.dialect],
        owner_id=owner_id,
        day=unit.now.date().isoformat(),
        requests=spent.requests,
        unpriced_requests=spent.unpriced_requests,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        cache_read_tokens=spent.cache_read_tokens,
        cache_write_tokens=spent.cache_write_tokens,
        cost_microdollars=spent.known_microdollars,
    )


def _add(insert: sqlite.Insert | postgresql.Insert) -> Statement:
    added = {name: spending.c[name] + insert.excluded[name] for name in _COUNTS}
    return Statement(insert.on_conflict_do_update(index_elements=["owner_id", "day"], set_=added), _COLUMNS)


_ADD = {"sqlite": _add(sqlite.insert(spending)), "postgresql": _add(postgresql.insert(spending))}
_KNOWN_ON = sa.select(spending.c.cost_microdollars).where(
    spending.c.owner_id == sa.bindparam("owner"), spending.c.day == sa.bindparam("day")
)
_BETWEEN = sa.select(*(sa.func.coalesce(sa.func.sum(spending.c[name]), 0).label(name) for name in _COUNTS)).where(
    spending.c.owner_id == sa.bindparam("owner"),
    spending.c.day >= sa.bindparam("first"),
    spending.c.day <= sa.bindparam("last"),
)


def known_on(connection: sa.Connection, owner_id: str, day: date) -> int:
    """The known cost of a day in microdollars."""
    return connection.execute(_KNOWN_ON, {"owner": owner_id, "day": day.isoformat()}).scalar() or 0


def between(connection: sa.Connection, owner_id: str, first: date, last: date) -> Spent:
    """What was used from the first to the last day, both included."""
    days = {"owner": owner_id, "first": first.isoformat(), "last": last.isoformat()}
    row = connection.execute(_BETWEEN, days).mappings().one()
    counts = {name: int(row[name]) for name in _COUNTS}
    return Spent(known_microdollars=counts.pop("cost_microdollars"), **counts)


def stored(usage: Usage | Spent) -> dict[str, int | None]:
    """As rows and events have it. Not by `asdict`, which copies every value: it is part of most commits of a turn."""
    return {each.name: getattr(usage, each.name) for each in _USAGE}
