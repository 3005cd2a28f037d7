"""What constrains a session and each of its ancestors, the session itself first."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from outlast.ids import SessionId
from outlast.store.sql.statement import Statement
from outlast.store.tables import sessions
from outlast.values import row_json

_DEEPEST = 100
"""So many ancestors are looked at: more than any session may have."""


class ConstraintsRow(NamedTuple):
    permissions: Mapping[str, Any] | None
    is_dry_run: bool
    binding: Mapping[str, Any] | None


def _chain() -> Statement:
    columns = (sessions.c.parent_id, sessions.c.permissions, sessions.c.is_dry_run, sessions.c.binding)
    own = sa.select(*columns, sa.literal(0).label("depth")).where(sessions.c.id == sa.bindparam("id"))
    found = own.cte("chain", recursive=True)
    above = sa.select(*columns, found.c.depth + 1).join(found, sessions.c.id == found.c.parent_id)
    found = found.union_all(above.where(found.c.depth < _DEEPEST))
    return Statement(sa.select(found).order_by(found.c.depth))


_CHAIN = _chain()


def chain(connection: sa.Connection, session_id: SessionId) -> Sequence[ConstraintsRow]:
    return [
        ConstraintsRow(read_object(row["permissions"]), bool(row["is_dry_run"]), read_object(row["binding"]))
        for row in _CHAIN.rows(connection, id=session_id)
    ]


def read_object(stored: str | None) -> Mapping[str, Any] | None:
    return None if stored is None else row_json.read_object(stored)
