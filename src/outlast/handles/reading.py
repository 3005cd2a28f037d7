"""Reading a session's log: from any position on, and what a reader gets who cannot have all of it."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from outlast.events.event import Event
from outlast.events.of_types import OfTypes
from outlast.events.stream import EventStream
from outlast.handles.services.services import Services
from outlast.ids import OwnerId, SessionId
from outlast.store.removed_sessions import no_such_session
from outlast.store.repositories import agents, inputs, old_logs, sessions
from outlast.store.repositories.inputs import InputKind
from outlast.store.repositories.sessions import SessionRow
from outlast.store.repositories.stored_task import Task as StoredTask
from outlast.wire.task_state import TaskState


def stream(
    services: Services,
    session_id: SessionId,
    owner_id: OwnerId,
    *,
    after: int = 0,
    known: Sequence[Event] = (),
    follow: bool = True,
    types: Sequence[str] = (),
) -> EventStream:
    """Replay from a position, then follow. `known`: what comes after it, for whoever has that already."""
    return EventStream(
        services.pages.reader(owner_id, has_begun=bool(known)),
        services.signals,
        session_id,
        after=after,
        known=known,
        is_following=follow,
        max_lag=services.max_reader_lag,
        snapshot=partial(snapshot, services, session_id, owner_id),
        show=services.pages.shown(services.shown),
        wants=OfTypes(types) if types else None,
    )


async def snapshot(services: Services, session_id: SessionId, owner_id: OwnerId) -> dict[str, Any]:
    """The session's state in a few fields: what a reader needs who cannot have all events."""

    def look(connection: sa.Connection) -> dict[str, Any]:
        row = there(connection, session_id, owner_id)
        waiting = [each for each in inputs.waiting(connection, session_id) if each.kind is InputKind.MESSAGE]
        return {
            "id": row.id,
            "title": row.title,
            "turn_id": row.turn_id,
            "is_held": row.is_held,
            "last_event": row.last_event,
            "inbox": [{"id": each.id, "text": each.text, "mode": each.mode} for each in waiting],
            **expiry(old_logs.removed_at(connection, session_id), "keep_events"),
        }

    return await services.database.read(look)


def expiry(removed_at: datetime | None, setting: str) -> dict[str, Any]:
    """For a reader from before: when something of what it reads was last removed, and the setting that says so."""
    return {} if removed_at is None else {"removed_at": removed_at.isoformat(), "setting": setting}


def unserved(connection: sa.Connection, found: Sequence[StoredTask]) -> Collection[str]:
    """The agents that tasks among these wait for and that no living worker has."""
    waited_for = {each.agent for each in found if each.state is TaskState.QUEUED}
    return waited_for - agents.present(connection) if waited_for else ()


def there(connection: sa.Connection, session_id: SessionId, owner_id: OwnerId) -> SessionRow:
    """The session's row; another owner's is not there."""
    row = sessions.get(connection, session_id, owner_id)
    if row is None:
        raise no_such_session(connection, session_id, owner_id)
    return row
