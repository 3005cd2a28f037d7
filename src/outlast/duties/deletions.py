"""Deleting a session: gone for everybody at once, then its rows are removed, then its files.

The mark on the session's row is what is committed first and removed last: whoever dies in between leaves it
there, and another process goes on: the next one that starts, or a living one whose duty it is.
"""

import asyncio
from collections.abc import Callable

import structlog

from outlast.ids import SessionId
from outlast.store.database import Database, retry_while_unavailable
from outlast.store.files.file_store import FileStore
from outlast.store.repositories import deleted
from outlast.store.unit import Unit
from outlast.values.redact import error_chain

log = structlog.get_logger("outlast.sessions")


class Deletions:
    """Removes what is marked. Owned by the runtime; a deletion goes on when whoever asked for it has left."""

    def __init__(self, database: Database, files: FileStore) -> None:
        self._database = database
        self._files = files
        self._running: dict[SessionId, asyncio.Task[None]] = {}
        self._seen: frozenset[SessionId] = frozenset()
        self._is_closed = False

    async def start(self) -> None:
        """Go on with what an earlier process left."""
        for session_id in await self._database.read(deleted.marked):
            self._begin(session_id)

    async def go_on(self) -> None:
        """Go on with what was there at the last look too: whoever began it is dead, or slow, and then both do it."""
        found = frozenset(await self._database.read(deleted.marked))
        for session_id in found & self._seen:
            if not self._is_closed:
                self._begin(session_id)
        self._seen = found

    async def finish(self, session_id: SessionId) -> None:
        """Remove a marked session; returns when nothing is left of it."""
        await asyncio.shield(self._begin(session_id))

    async def close(self) -> None:
        """Leave the rest to others, or to the next start."""
        self._is_closed = True
        running = set(self._running.values())
        for each in running:
            each.cancel()
        if running:
            await asyncio.wait(running)

    def _begin(self, session_id: SessionId) -> asyncio.Task[None]:
        running = self._running.get(session_id)
        if running is None:
            running = self._running[session_id] = asyncio.create_task(
                self._remove(session_id), name=f"delete {session_id}"
            )
            running.add_done_callback(lambda done: self._over(session_id, done))
        return running

    def _over(self, session_id: SessionId, done: asyncio.Task[None]) -> None:
        self._running.pop(session_id, None)
        exc = None if done.cancelled() else done.exception()
        if exc is not None:
            log.error(
                "a session is not all removed: a later look goes on",
                session_id=session_id,
                exception=error_chain(exc),
            )

    async def _remove(self, session_id: SessionId) -> None:
        """In small transactions, so that nobody waits long for the writer."""
        is_done = False
        while not is_done:
            is_done = await self._commit("delete.rows", lambda unit: deleted.remove_some(unit, session_id))
        await retry_while_unavailable(lambda: self._files.remove_all(session_id))
        await self._commit("delete.session", lambda unit: deleted.remove_last(unit, session_id))
        # What an attempt still put there before it heard that it must stop.
        await retry_while_unavailable(lambda: self._files.remove_all(session_id))

    async def _commit(self, name: str, fn: Callable[[Unit], bool]) -> bool:
        return await retry_while_unavailable(lambda: self._database.transaction(fn, name=name))
