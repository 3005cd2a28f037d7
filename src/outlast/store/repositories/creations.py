"""Creations: which session was made under which idempotency key. Kept for a day."""

from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from outlast.clock import to_microseconds
from outlast.ids import SessionId
from outlast.store.tables import creations
from outlast.store.unit import Unit

KEPT = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Creation:
    session_id: SessionId
    fingerprint: str


def begin(unit: Unit, owner_id: str, key: str, *, fingerprint: str, session_id: SessionId) -> Creation | None:
    """Take the key for a new session. Gives what was made under it before, in which case nothing is to be made.

    Two that come at once: the second waits for the first one's commit and then sees what it made.
    """
    unit.connection.execute(
        sa.delete(creations).where(
            creations.c.owner_id == owner_id, creations.c.created_at < to_microseconds(unit.now - KEPT)
        )
    )
    row = {
        "owner_id": owner_id,
        "idempotency_key": key,
        "fingerprint": fingerprint,
        "session_id": session_id,
        "created_at": unit.now_us,
    }
    insert = postgresql.insert if unit.dialect == "postgresql" else sqlite.insert
    done = unit.connection.execute(insert(creations).values(row).on_conflict_do_nothing())
    if done.rowcount == 1:
        return None
    known = unit.connection.execute(
        sa.select(creations.c.session_id, creations.c.fingerprint).where(
            creations.c.owner_id == owner_id, creations.c.idempotency_key == key
        )
    ).one()
    return Creation(SessionId(known.session_id), known.fingerprint)


def point(unit: Unit, owner_id: str, key: str, session_id: SessionId) -> None:
    """What the key made turned out to be another session, which was there already."""
    unit.connection.execute(
        sa.update(creations)
        .where(creations.c.owner_id == owner_id, creations.c.idempotency_key == key)
        .values(session_id=session_id)
    )
