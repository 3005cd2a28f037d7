"""The same change of many rows: one statement however many there are."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from outlast.store.sql.statement import Write, change_many

_ARRAYS: dict[type[Any], str] = {
    sa.Text: "text",
    sa.Boolean: "boolean",
    sa.BigInteger: "bigint",
    sa.Integer: "integer",
    sa.Float: "double precision",
}


class ManyRows:
    """Rows are given in the order of `columns`. PostgreSQL gets an array a column, SQLite one row after the other."""

    def __init__(self, table: sa.Table, columns: Sequence[str], *, for_postgresql: str, for_sqlite: str) -> None:
        arrays = (f"${at}::{_ARRAYS[type(table.c[name].type)]}[]" for at, name in enumerate(columns, 1))
        self._table = table.name
        self._far = for_postgresql.format(rows=f"unnest({', '.join(arrays)})")
        self._near = for_sqlite
        self._is_insert = for_sqlite.startswith("INSERT")

    def later(self, rows: Sequence[Sequence[Any]]) -> Write:
        """To be sent with other writes. PostgreSQL only."""
        columns = tuple(list(column) for column in zip(*rows, strict=True))
        return Write(self._table, self._far, columns, is_insert=self._is_insert)

    def run(self, connection: sa.Connection, rows: Sequence[Sequence[Any]]) -> None:
        """At once. SQLite only."""
        change_many(connection, self._near, rows)


def insert_many(table: sa.Table, columns: Sequence[str]) -> ManyRows:
    names = ", ".join(_quoted(each) for each in columns)
    places = ", ".join("?" for _ in columns)
    return ManyRows(
        table,
        columns,
        for_postgresql=f"INSERT INTO {table.name} ({names}) SELECT * FROM {{rows}}",
        for_sqlite=f"INSERT INTO {table.name} ({names}) VALUES ({places})",
    )


def update_many(table: sa.Table, columns: Sequence[str]) -> ManyRows:
    """The first column is the key of the row; no key comes twice. Its limit is there for what `given_keys` says."""
    key, *changed = map(_quoted, columns)
    far = ", ".join(f"{each} = given.{each}" for each in changed)
    near = ", ".join(f"{each} = ?{at}" for at, each in enumerate(changed, 2))
    return ManyRows(
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
