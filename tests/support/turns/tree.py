"""Trees of sessions: a session made the child of another, as the runtime does for a sub-session."""

from typing import Any

import sqlalchemy as sa

from outlast import Outlast, Session
from outlast.store.tables import sessions
from outlast.store.unit import Unit


async def link(outlast: Outlast[Any, Any], child: Session, parent: Session) -> None:
    def set_parent(unit: Unit) -> None:
        unit.connection.execute(sa.update(sessions).where(sessions.c.id == child.id).values(parent_id=parent.id))

    await outlast.database.transaction(set_parent, name="link")
