"""Statements of the hot path: compiled once for each kind of database, then run in the driver's own words.

SQLAlchemy takes ten times as long around a small statement as SQLite takes for it, and a turn has some forty. On
PostgreSQL it begins the transaction and ends it; the statements between go to the driver.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.util import await_only

Row = Mapping[Any, Any]
"""What was found, by the names of its columns."""
Construct = sa.Select[*tuple[Any, ...]] | sa.Insert | sa.Update | sa.Delete


@dataclass(frozen=True, slots=True)
class _Words:
    """A statement as one driver takes it."""

    text: str
    bind: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    names: tuple[str, ...]
    booleans: tuple[str, ...]
    """Columns that the driver gives as numbers."""


@dataclass(frozen=True, slots=True)
class Write:
    """A statement that changes one table, with its values, in the words of a driver that numbers its places."""

    table: str
    text: str
    values: tuple[Any, ...]
    is_insert: bool
    """It makes new rows and touches no other."""


class Statement:
    """A construct whose parameters are all named `bindparam`s, or `columns` of an insert."""

    def __init__(self, construct: Construct, columns: Sequence[str] = ()) -> None:
        self._construct = construct
        self._columns = columns
        self._words: dict[str, _Words] = {}
        table = None if isinstance(construct, sa.Select) else construct.table
        self._table = table.name if isinstance(table, sa.Table) else ""
        self._is_insert = type(construct) is sa.Insert  # those of a dialect update what is there already

    def first(self, connection: sa.Connection, **values: Any) -> Row | None:
        found = self.rows(connection, **values)
        return found[0] if found else None

    def rows(self, connection: sa.Connection, **values: Any) -> list[Row]:
        words = self._in_words(connection.dialect)
        rows = _fetch(connection, words.text, words.bind(values))
        found = [dict(zip(words.names, row, strict=True)) for row in rows]
        for name in words.booleans:
            for row in found:
                row[name] = None if row[name] is None else bool(row[name])
        return list(found)

    def tuples(self, connection: sa.Connection, **values: Any) -> Sequence[Sequence[Any]]:
        """Rows in the order of the columns, as the driver gives them."""
        words = self._in_words(connection.dialect)
        return _fetch(connection, words.text, words.bind(values))

    def scalar(self, connection: sa.Connection, **values: Any) -> Any:
        """The first column of the first row; None when there is none."""
        found = self.tuples(connection, **values)
        return found[0][0] if found else None

    def run(self, connection: sa.Connection, **values: Any) -> int:
        """Gives how many rows it changed."""
        words = self._in_words(connection.dialect)
        return change(connection, words.text, words.bind(values))

    def with_values(self, dialect: sa.Dialect, **values: Any) -> Write:
        """To be run later, with others."""
        assert self._table, "only what changes a table can wait"
        words = self._in_words(dialect)
        return Write(self._table, words.text, words.bind(values), is_insert=self._is_insert)

    def _in_words(self, dialect: sa.Dialect) -> _Words:
        words = self._words.get(dialect.name)
        if words is None:
            words = self._words[dialect.name] = _compile(self._construct, self._columns, dialect)
        return words


def given_keys(name: str) -> sa.Subquery:
    """Keys that are given as an array, one a row, to join with their table.

    PostgreSQL may keep a plan that it made while the table was empty. It takes an array for many rows, and would read
    the whole table; a limit that it does not know it takes for few, and looks each key up.
    """
    given = sa.bindparam(name, type_=postgresql.ARRAY(sa.Text))
    found = sa.func.unnest(given).table_valued("key").render_derived()
    return sa.select(found.c.key).limit(sa.func.cardinality(given)).subquery("given")


def change(connection: sa.Connection, text: str, values: tuple[Any, ...]) -> int:
    """Run a text of the driver's own; gives how many rows it changed."""
    driver = _driver(connection)
    if connection.dialect.name == "sqlite":
        return driver.execute(text, values).rowcount
    if not _has_begun(connection, driver):
        return connection.exec_driver_sql(text, values).rowcount
    status: str = await_only(driver.execute(text, *values))
    return int(status.rpartition(" ")[2])


def change_many(connection: sa.Connection, text: str, rows: Sequence[Sequence[Any]]) -> None:
    """On SQLite: the same text for each row."""
    _driver(connection).executemany(text, rows)


def _fetch(connection: sa.Connection, text: str, values: tuple[Any, ...]) -> Sequence[Sequence[Any]]:
    driver = _driver(connection)
    if connection.dialect.name == "sqlite":
        return driver.execute(text, values).fetchall()
    if not _has_begun(connection, driver):
        return connection.exec_driver_sql(text, values).fetchall()
    return await_only(driver.fetch(text, *values))


def _has_begun(connection: sa.Connection, driver: Any) -> bool:
    """SQLAlchemy begins a transaction with the first statement that it is given."""
    return driver.is_in_transaction() or connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT"


def _driver(connection: sa.Connection) -> Any:
    return connection.connection.driver_connection


def _compile(construct: Construct, columns: Sequence[str], dialect: sa.Dialect) -> _Words:
    compiled: Any = construct.compile(dialect=dialect, column_keys=list(columns) or None)
    order: tuple[str, ...] = tuple(compiled.positiontup)
    fixed = {name: compiled.binds[name].value for name in order if not compiled.binds[name].required}

    def bind(values: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple([values[name] if name in values else fixed[name] for name in order])

    found = construct.exported_columns
    booleans = (column.name for column in found if isinstance(column.type, sa.Boolean))
    return _Words(
        str(compiled), bind, tuple(column.name for column in found), tuple(booleans) if dialect.name == "sqlite" else ()
    )
