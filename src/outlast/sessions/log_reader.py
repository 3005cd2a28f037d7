"""Pages of a session's log for one stream."""

import sqlalchemy as sa

from outlast.events.stream import Page, PageReader
from outlast.ids import SessionId
from outlast.store import events
from outlast.store.database import Database


def log_reader(database: Database, owner_id: str) -> PageReader:
    """For one reader: whoever began to read may read to the end of the log, also when the session is deleted."""
    has_begun = False

    async def read(session_id: SessionId, after: int, limit: int) -> Page | None:
        nonlocal has_begun

        def page(connection: sa.Connection) -> Page | None:
            bounds = events.bounds(connection, session_id, owner_id=owner_id, with_deleted=has_begun)
            if bounds is None:
                return None
            found = events.page(connection, session_id, max(after, bounds[0] - 1), limit)
            return Page(found, bounds[0], bounds[1])

        found = await database.read(page)
        has_begun = has_begun or found is not None
        return found

    return read
