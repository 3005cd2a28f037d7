"""Writes that nobody waits for, sent as one statement: to a server, each statement of its own is a journey."""

import re
from functools import lru_cache

import sqlalchemy as sa

from outlast.store.sql.statement import Write, change

_PLACE = re.compile(r"\$(\d+)")
_MOST = 50
"""Writes in one statement. A statement takes 32,767 values, and texts of any length would be kept prepared."""


class Batch:
    """What PostgreSQL is told at once. Its parts do not see each other, so none may touch a row of another.

    Only rows that nobody else writes belong in it: in which order its parts take their locks is not said.
    """

    def __init__(self) -> None:
        self._writes: list[Write] = []
        self._only_inserts: dict[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._writes)

    def touches(self, table: str) -> bool:
        return table in self._only_inserts

    def takes(self, write: Write) -> bool:
        """New rows may join new rows of the same table; what changes rows must be the first to touch it."""
        if len(self._writes) >= _MOST:
            return False
        return not self.touches(write.table) or (write.is_insert and self._only_inserts[write.table])

    def add(self, write: Write) -> None:
        self._writes.append(write)
        self._only_inserts[write.table] = write.is_insert and self._only_inserts.get(write.table, True)

    def run(self, connection: sa.Connection) -> None:
        writes, self._writes, self._only_inserts = self._writes, [], {}
        values = [value for write in writes for value in write.values]
        text = _joined(tuple((write.text, len(write.values)) for write in writes))
        change(connection, text, tuple(values))


@lru_cache(maxsize=1024)
def _joined(parts: tuple[tuple[str, int], ...]) -> str:
    """One statement of all: each but the last is a common table expression that changes data."""
    texts: list[str] = []
    before = 0
    for text, count in parts:
        texts.append(_renumbered(text, before))
        before += count
    *first, last = texts
    named = ", ".join(f"write_{at} AS ({text})" for at, text in enumerate(first))
    return f"WITH {named} {last}" if named else last


def _renumbered(text: str, by: int) -> str:
    def moved(place: re.Match[str]) -> str:
        return f"${int(place[1]) + by}"

    return _PLACE.sub(moved, text) if by else text
