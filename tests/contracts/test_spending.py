"""Spending on both databases: added up by owner and UTC day, known apart from unknown."""

import asyncio
from datetime import UTC, date, datetime
from typing import Any

import pytest

from outlast.handles import usage as report
from outlast.ids import OwnerId
from outlast.store.database import Database
from outlast.store.repositories import spending
from outlast.store.repositories.spending import Spent
from outlast.store.unit import Unit
from tests.support.stores.store import OWNER

BIG = 9_000_000_000
"""More than 32 bits hold."""
THE_17TH = date(2026, 11, 17)


def usage(cost: int | None, *, tokens: int = 10) -> dict[str, Any]:
    return {
        "input_tokens": tokens,
        "output_tokens": 2,
        "cache_read_tokens": 3,
        "cache_write_tokens": 4,
        "cost_microdollars": cost,
    }


async def spend(database: Database, cost: int | None, *, at: datetime, owner_id: str = OWNER, tokens: int = 10) -> None:
    """On a day of the test's own choice: PostgreSQL has its own clock."""

    def add(unit: Unit) -> None:
        then = Unit(unit.connection, at)
        spending.add(then, owner_id, usage(cost, tokens=tokens))
        then.flush()

    await database.transaction(add, name="spend")


def day(number: int, hour: int = 12) -> datetime:
    """In November 2026: the 16th is a Monday."""
    return datetime(2026, 11, number, hour, tzinfo=UTC)


async def test_requests_are_added_up_by_day(database: Database) -> None:
    """H1: tokens with cache reads and writes, requests, and cost."""
    await spend(database, 5, at=day(17, 0))
    await spend(database, BIG, at=day(17, 23), tokens=BIG)
    await spend(database, 7, at=day(18, 0))
    await spend(database, 100, at=day(17), owner_id="oskar")
    spent = await database.read(lambda connection: spending.between(connection, OWNER, THE_17TH, THE_17TH))
    assert spent == Spent(
        requests=2,
        unpriced_requests=0,
        input_tokens=10 + BIG,
        output_tokens=4,
        cache_read_tokens=6,
        cache_write_tokens=8,
        known_microdollars=5 + BIG,
    )
    assert spent.cost_microdollars == 5 + BIG
    assert await database.read(lambda connection: spending.known_on(connection, OWNER, THE_17TH)) == 5 + BIG
    assert await database.read(lambda connection: spending.known_on(connection, OWNER, date(2026, 11, 19))) == 0


async def test_a_cost_that_is_not_known_is_never_shown_as_zero(database: Database) -> None:
    """H1: one request of unknown cost makes the sum unknown; what is known of it is still told."""
    await spend(database, None, at=day(17))
    found = await report.report(database, OwnerId(OWNER), now=day(17), limit=100)
    assert (found.today.cost_microdollars, found.today.unpriced_requests) == (None, 1)
    await spend(database, 30, at=day(17))
    found = await report.report(database, OwnerId(OWNER), now=day(17), limit=100)
    assert (found.today.cost_microdollars, found.today.known_microdollars) == (None, 30)
    assert (found.percent, found.is_at_limit) == (30, False)


async def test_nothing_used_costs_nothing(database: Database) -> None:
    found = await report.report(database, OwnerId(OWNER), now=day(17), limit=None)
    assert (found.today, found.week) == (Spent(), Spent())
    assert (found.today.cost_microdollars, found.percent, found.limit_microdollars) == (0, None, None)


async def test_no_more_than_all_of_the_limit_is_used(database: Database) -> None:
    """H3: the last turn may cost more than was left; that is not 250 % of a day."""
    await spend(database, 250, at=day(17))
    found = await report.report(database, OwnerId(OWNER), now=day(17), limit=100)
    assert (found.percent, found.is_at_limit) == (100, True)


async def test_the_week_begins_on_monday(database: Database) -> None:
    """H2: days and weeks are those of UTC."""
    for number, cost in ((15, 1), (16, 10), (18, 100), (19, 1000)):
        await spend(database, cost, at=day(number))
    found = await report.report(database, OwnerId(OWNER), now=day(18), limit=100)
    assert (found.today.cost_microdollars, found.week.cost_microdollars) == (100, 110)
    assert (found.percent, found.is_at_limit) == (100, True)
    assert (found.resets_at, found.week_resets_at) == (day(19, 0), day(23, 0))
    sunday = await report.report(database, OwnerId(OWNER), now=day(15), limit=100)
    assert (sunday.week.cost_microdollars, sunday.resets_at, sunday.week_resets_at) == (1, day(16, 0), day(16, 0))


@pytest.mark.parametrize("is_rolled_back", [True, False])
async def test_spending_is_part_of_its_transaction(database: Database, is_rolled_back: bool) -> None:
    """H1: what was not committed was not spent."""

    def add(unit: Unit) -> None:
        spending.add(unit, OWNER, usage(1))
        if is_rolled_back:
            raise RuntimeError("no")

    [error] = await asyncio.gather(database.transaction(add, name="spend"), return_exceptions=True)
    assert isinstance(error, RuntimeError) is is_rolled_back
    whole = await database.read(lambda connection: spending.between(connection, OWNER, date(2000, 1, 1), date.max))
    assert whole.requests == (0 if is_rolled_back else 1)


async def test_turns_that_spend_at_once_lose_nothing(database: Database) -> None:
    """H1: one owner, many turns, one row."""
    await asyncio.gather(*(spend(database, 3, at=day(17)) for _ in range(20)))
    spent = await database.read(lambda connection: spending.between(connection, OWNER, THE_17TH, THE_17TH))
    assert (spent.requests, spent.cost_microdollars) == (20, 60)
