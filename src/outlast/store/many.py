"""The same change of many rows: one statement however many there are."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from outlast.store.statement import Write

_ARRAYS: dict[type[Any], str] = {
    sa.Text: "text",
    sa.Boolean: "boolean",
    sa.BigInteger: "bigint",
    sa.Integer: "integer",
    sa.Float: "double precision",
}


class Many:
    """Rows are given in the order of `columns`. PostgreSQL gets an array a column, SQLite one row after the other."""

    def __init__(self, table: sa.Table, columns: Sequence[str], *, for_postgresql: str, for_sqlite: str) -> None:
        arrays = (f"${at}::{_ARRAYS[type(table.c[name].type)]}[]" for at, name in enumerate(columns, 1))
        self._table = table.name
        self._far = for_postgresql.format(rows=f"unnest({', '.join(arrays)})")
        self._near = for_sqlite
        self._is_insert = for_sqlite.startswith("INSERT")

    def later(self, rows: Sequence[Sequence[Any]]) -> Write:
        """To be run with others, on PostgreSQL."""
        columns = tuple(list(column) for column in zip(*rows, strict=True))
        return Write(self._table, self._far, columns, is_insert=self._is_insert)

    def run(self, connection: sa.Connection, rows: Sequence[Sequence[Any]]) -> None:
        """On SQLite."""
        driver: Any = connection.connection.driver_connection
        driver.executemany(self._near, rows)


def insert_many(table: sa.Table, columns: Sequence[str]) -> Many:
    names = ", ".join(_quoted(each) for each in columns)
    places = ", ".join("?" for _ in columns)
    return Many(
        table,
        columns,
        for_postgresql=f"INSERT INTO {table.name} ({names}) SELECT * FROM {{rows}}",
        for_sqlite=f"INSERT INTO {table.name} ({names}) VALUES ({places})",
    )


def keys(name: str) -> sa.Subquery:
    """The keys in an array, one a row, to join with their table: PostgreSQL then looks each of them up.

    It keeps the plan that it made when the table was still empty. How many rows a limit leaves that is not known
    then, it takes to be few; of an array it takes to be so many that it would read the whole table, however large.
    """
    given = sa.bindparam(name, type_=postgresql.ARRAY(sa.Text))
    found = sa.func.unnest(given).table_valued("key", name="each_key").render_derived()
    return sa.select(found.c.key).limit(sa.func.cardinality(given)).subquery("given")


def update_many(table: sa.Table, columns: Sequence[str]) -> Many:
    """The first column is the key of the row; no key comes twice. Its limit is there for what `keys` says."""
    key, *changed = map(_quoted, columns)
    far = ", ".join(f"{each} = given.{each}" for each in changed)
    near = ", ".join(f"{each} = ?{at}" for at, each in enumerate(changed, 2))
    return Many(
        table,
        columns,
        for_postgresql=(
            f"UPDATE {table.name} SET {far} FROM (SELECT * FROM {{rows}} AS given({', '.join([key, *changed])}) "
            f"LIMIT cardinality($1)) AS given WHERE {table.name}.{key} = given.{key}"
        ),
        for_sqlite=f"UPDATE {table.name} SET {near} WHERE {key} = ?1",
    )


def _quoted(name: str) -> str:
    return f'"{name}"'
