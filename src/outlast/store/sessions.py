"""Sessions: conversations that outlive processes; each has one owner."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from pydantic_core import from_json, to_json

from outlast.clock import from_microseconds
from outlast.ids import OwnerId, SessionId, TurnId
from outlast.store.tables import sessions
from outlast.store.unit import Unit
from outlast.tools.hints import UNSET, Unset


@dataclass(frozen=True, slots=True)
class SessionRow:
    id: SessionId
    owner_id: OwnerId
    agent: str
    model: str | None
    title: str | None
    metadata: Mapping[str, Any]
    turn_id: TurnId | None
    is_held: bool
    woken_turns: int
    last_event: int
    created_at: datetime
    updated_at: datetime


def from_row(row: sa.RowMapping) -> SessionRow:
    return SessionRow(
        id=SessionId(row["id"]),
        owner_id=OwnerId(row["owner_id"]),
        agent=row["agent"],
        model=row["model"],
        title=row["title"],
        metadata=from_json(row["metadata"]),
        turn_id=row["turn_id"],
        is_held=row["is_held"],
        woken_turns=row["woken_turns"],
        last_event=row["last_event"],
        created_at=from_microseconds(row["created_at"]),
        updated_at=from_microseconds(row["updated_at"]),
    )


NO_BUDGET = -1.0
"""How "no budget: wait for every call" is stored; NULL means the default."""


def budget_of(stored: float | None) -> timedelta | Unset | None:
    if stored is None:
        return UNSET
    return None if stored == NO_BUDGET else timedelta(seconds=stored)


def _stored(budget: timedelta | Unset | None) -> float | None:
    if isinstance(budget, Unset):
        return None
    return NO_BUDGET if budget is None else budget.total_seconds()


def insert(
    unit: Unit,
    session_id: SessionId,
    *,
    owner_id: str,
    agent: str,
    model: str | None,
    title: str | None,
    metadata: Mapping[str, Any],
    budget: timedelta | Unset | None = UNSET,
) -> None:
    unit.connection.execute(
        sa.insert(sessions).values(
            id=session_id,
            owner_id=owner_id,
            parent_id=None,
            agent=agent,
            model=model,
            title=title,
            metadata=to_json(metadata).decode(),
            budget_seconds=_stored(budget),
            turn_id=None,
            is_held=False,
            woken_turns=0,
            first_event=1,
            last_event=0,
            last_message=0,
            last_input=0,
            created_at=unit.now_us,
            updated_at=unit.now_us,
        )
    )


_GET = sa.select(sessions).where(sessions.c.id == sa.bindparam("id"), sessions.c.owner_id == sa.bindparam("owner"))


def get(connection: sa.Connection, session_id: SessionId, owner_id: str) -> SessionRow | None:
    row = connection.execute(_GET, {"id": session_id, "owner": owner_id}).mappings().first()
    return None if row is None else from_row(row)


def page(connection: sa.Connection, owner_id: str, *, limit: int, before: str | None = None) -> list[SessionRow]:
    """Newest first; `before` is the id of the last one already seen."""
    query = sa.select(sessions).where(sessions.c.owner_id == owner_id)
    if before is not None:
        query = query.where(sessions.c.id < before)
    return [from_row(row) for row in connection.execute(query.order_by(sessions.c.id.desc()).limit(limit)).mappings()]
