"""Summaries: what the model is sent in place of a session's oldest messages. The messages themselves stay."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from pydantic_core import from_json, to_json

from outlast.ids import SessionId, TurnId
from outlast.store.sql.statement import Statement
from outlast.store.tables import summaries
from outlast.store.unit import Unit


@dataclass(frozen=True, slots=True)
class Summary:
    """`up_to`: the position of the last message that it stands for. `body`: the request in their place, as JSON."""

    up_to: int
    body: str
    model: str | None


_LATEST = Statement(
    sa.select(summaries.c.up_to, summaries.c.body, summaries.c.model)
    .where(summaries.c.session_id == sa.bindparam("session"))
    .order_by(summaries.c.up_to.desc())
    .limit(1)
)


def latest(connection: sa.Connection, session_id: SessionId) -> Summary | None:
    found = _LATEST.tuples(connection, session=session_id)
    return Summary(*found[0]) if found else None


def of_session(connection: sa.Connection, session_id: SessionId, *, up_to: int | None = None) -> list[Summary]:
    """In order; only those that end at a position or before it."""
    query = sa.select(summaries.c.up_to, summaries.c.body, summaries.c.model).where(
        summaries.c.session_id == session_id
    )
    if up_to is not None:
        query = query.where(summaries.c.up_to <= up_to)
    return [Summary(*row) for row in connection.execute(query.order_by(summaries.c.up_to))]


def usage_of_turn(connection: sa.Connection, session_id: SessionId, turn_id: TurnId) -> list[dict[str, Any]]:
    """What the summaries took that were made in a turn, each as its response told."""
    query = sa.select(summaries.c.usage).where(summaries.c.session_id == session_id, summaries.c.turn_id == turn_id)
    return [from_json(used) for used in connection.execute(query).scalars() if used is not None]


def add(
    unit: Unit,
    session_id: SessionId,
    summary: Summary,
    *,
    usage: Mapping[str, Any] | None = None,
    turn_id: TurnId | None = None,
) -> None:
    unit.connection.execute(
        sa.insert(summaries).values(
            session_id=session_id,
            up_to=summary.up_to,
            body=summary.body,
            model=summary.model,
            usage=None if usage is None else to_json(usage).decode(),
            turn_id=turn_id,
            created_at=unit.now_us,
        )
    )


def drop_after(unit: Unit, session_id: SessionId, position: int) -> None:
    """Those that stand for something after a position, which is no longer what was said."""
    unit.connection.execute(
        sa.delete(summaries).where(summaries.c.session_id == session_id, summaries.c.up_to > position)
    )
