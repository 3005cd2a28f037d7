"""Statements in the driver's own words give what SQLAlchemy gives, on both databases."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from outlast.errors import StoreUnavailable
from outlast.store.database import Database
from outlast.store.repositories import sessions, turns
from outlast.store.sql.statement import Row, Statement
from outlast.store.tables import sessions as table
from outlast.store.unit import Unit
from tests.support.stores.store import OWNER, new_session, opened

_ALL = sa.select(table).where(table.c.owner_id == sa.bindparam("owner"), table.c.last_event >= 0)


async def test_a_statement_finds_the_same_rows_as_sqlalchemy(database: Database) -> None:
    """DESIGN 4: the same code for both: names, values and truth values are alike, and so are literals in it."""
    for _ in range(3):
        await new_session(database)

    def read(connection: sa.Connection) -> tuple[list[Row], list[Row]]:
        expected: list[Row] = [dict(row) for row in connection.execute(_ALL, {"owner": OWNER}).mappings()]
        return expected, Statement(_ALL).rows(connection, owner=OWNER)

    expected, found = await database.read(read)
    assert len(found) == 3
    assert found == expected
    assert [type(row["is_held"]) for row in found] == [bool] * 3


async def test_a_statement_says_how_many_rows_it_changed(database: Database) -> None:
    """P5: a compare-and-set is decided by that number."""
    session_id = await new_session(database)
    hold = Statement(sa.update(table).where(table.c.id == sa.bindparam("id"), ~table.c.is_held).values(is_held=True))

    def twice(unit: Unit) -> list[int]:
        return [hold.run(unit.connection, id=each) for each in (session_id, session_id, "ses_unknown")]

    assert await database.transaction(twice, name="hold") == [1, 0, 0]


async def test_a_glance_sees_what_was_committed_before_it(database: Database) -> None:
    """P4: whoever was told to look finds what there is to see, however often he looks."""
    session_id = await new_session(database)
    for title in ("one", "two"):
        await database.transaction(lambda unit, title=title: unit.lock(session_id).set(title=title), name="title")
        seen = await database.glance(lambda connection: sessions.get(connection, session_id, OWNER))
        assert seen is not None
        assert seen.title == title
    with pytest.raises(ZeroDivisionError):
        await database.glance(lambda connection: 1 // 0)
    assert await database.glance(lambda connection: turns.last_of(connection, session_id)) is None


async def test_there_is_nothing_to_glance_at_in_a_closed_file(tmp_path: Path) -> None:
    """P1: a store that this process has closed says so."""
    async with opened(f"sqlite:///{tmp_path}/app.db") as database:
        await database.close()
        with pytest.raises(StoreUnavailable):
            await database.glance(lambda connection: connection.execute(sa.text("SELECT 1")).scalar())
