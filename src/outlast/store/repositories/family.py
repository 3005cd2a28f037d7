"""Sessions above and below a session."""

from collections.abc import Sequence

import sqlalchemy as sa

from outlast.ids import SessionId
from outlast.store.sql.statement import Statement
from outlast.store.tables import sessions

_DEEPEST = 100
"""So many ancestors are looked at: more than any session may have."""


def _above() -> Statement:
    columns = (sessions.c.id, sessions.c.parent_id)
    found = sa.select(*columns, sa.literal(0).label("depth")).where(sessions.c.id == sa.bindparam("id"))
    chain = found.cte("chain", recursive=True)
    parents = sa.select(*columns, chain.c.depth + 1).join(chain, sessions.c.id == chain.c.parent_id)
    chain = chain.union_all(parents.where(chain.c.depth < _DEEPEST))
    return Statement(sa.select(chain.c.id).where(chain.c.depth > 0).order_by(chain.c.depth))


_ABOVE = _above()


def ancestors(connection: sa.Connection, session_id: SessionId) -> list[SessionId]:
    """The nearest first. None for a session that nobody gave work to, or that is not there."""
    return [SessionId(row["id"]) for row in _ABOVE.rows(connection, id=session_id)]


def children(connection: sa.Connection, session_ids: Sequence[SessionId]) -> list[SessionId]:
    """Those that are not being deleted."""
    found = sa.select(sessions.c.id).where(sessions.c.parent_id.in_(session_ids), sessions.c.deleted_at.is_(None))
    return [SessionId(each) for each in connection.execute(found.order_by(sessions.c.id)).scalars()]


def below(connection: sa.Connection, session_id: SessionId) -> list[SessionId]:
    """All sessions below one, the deepest first: in the order in which they are locked."""
    levels = [[session_id]]
    while levels[-1]:
        levels.append(children(connection, levels[-1]))
    return [each for level in reversed(levels[1:]) for each in level]
