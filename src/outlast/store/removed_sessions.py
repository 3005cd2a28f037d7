"""Sessions that were removed because they were kept long enough: when, and by which setting, for those who ask."""

from datetime import datetime

import sqlalchemy as sa

from outlast.clock import from_microseconds, to_microseconds
from outlast.errors import NotFound
from outlast.ids import SessionId
from outlast.store.tables import removed_sessions


def note(connection: sa.Connection, session_id: SessionId, owner_id: str, *, setting: str, at_us: int) -> None:
    """In the commit from which on the session is not there."""
    values = {"id": session_id, "owner_id": owner_id, "setting": setting, "at": at_us}
    connection.execute(sa.insert(removed_sessions).values(values))


def no_such_session(connection: sa.Connection, session_id: str, owner_id: str | None) -> NotFound:
    """What its owner is told who asks for one that is not there. Others are told no more than of an unknown id."""
    found = connection.execute(
        sa.select(removed_sessions.c.setting, removed_sessions.c.at).where(
            removed_sessions.c.id == session_id, removed_sessions.c.owner_id == owner_id
        )
    ).first()
    if found is None:
        return NotFound("There is no such session.", id=session_id)
    at = from_microseconds(found.at)
    return NotFound(
        f"There is no such session any more: it was removed on {at:%Y-%m-%d}, as the setting {found.setting} says.",
        id=session_id,
        removed_at=at.isoformat(),
        setting=found.setting,
    )


def remove_notes(connection: sa.Connection, before: datetime, *, limit: int) -> int:
    old = sa.select(removed_sessions.c.id).where(removed_sessions.c.at < to_microseconds(before)).limit(limit)
    return connection.execute(sa.delete(removed_sessions).where(removed_sessions.c.id.in_(old))).rowcount
