"""The files of sessions: a row that names each, and its bytes. Used by doors and by calls, which say who may."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import sqlalchemy as sa

from outlast.errors import BodyTooLarge, Conflict, NotFound
from outlast.ids import SessionId, content_key, file_key, session_of_file
from outlast.store.database import Database
from outlast.store.files.file_store import FileStore
from outlast.store.removed_sessions import no_such_session
from outlast.store.repositories import files as rows
from outlast.store.repositories import sessions
from outlast.store.repositories.files import FileRow, NewFile, Origin
from outlast.store.unit import Unit
from outlast.values.file_name import check_name, check_type

OF_THE_LOG = frozenset({"message", "artifact"})
"""Origins of what is kept as long as its session."""


@dataclass(frozen=True, slots=True)
class SessionFiles:
    database: Database
    files: FileStore

    async def keep(
        self,
        session_id: SessionId,
        owner_id: str,
        name: str,
        data: bytes,
        media_type: str,
        *,
        origin: Origin,
        made_by: str,
        replaces: bool = False,
        may_write: Callable[[Unit], None] = lambda unit: None,
    ) -> FileRow:
        """`replaces`: what has its name; else it gets another name if that is taken.

        `may_write` raises for whoever may not, in the commit too. Raises `BodyTooLarge` for what has no room.
        """
        check_name(name)
        most = self.database.limits.max_file_bytes
        if len(data) > most:
            raise BodyTooLarge(f"{name}: {len(data)} bytes are too many; a file has at most {most}.")
        media_type = check_type(media_type)

        await self._there(session_id, owner_id)
        key = await self.files.put_copy(session_id, data)
        new = NewFile(name, key, media_type, len(data), origin, made_by)

        def write(unit: Unit) -> FileRow:
            unit.lock(session_id, owner_id=owner_id)
            may_write(unit)
            rows.check_room(unit, session_id, [new], instead_of=name if replaces else None)
            return (rows.put if replaces else rows.add)(unit, session_id, new)

        try:
            row = await self.database.transaction(write, name="file")
        except NotFound:  # deleted just now: then nobody else removes what was put after that
            await self.files.remove_all(session_id)
            raise
        if row.key != key:  # the session has it already
            await self.files.remove(key)
        return row

    async def read(self, session_id: SessionId, name_or_id: str) -> tuple[FileRow | None, bytes | None]:
        """What is known of it, and its bytes. Of an id also what lost its name; None for what is not there."""
        seen: FileRow | None = None
        while (row := await self.find(session_id, name_or_id)) is not None and row != seen:
            if (data := await self.files.find(row.key)) is not None:
                return row, data
            seen = row  # written anew meanwhile, or deleted
        key = key_in(session_id, name_or_id)
        return None, None if key is None else await self.files.find_content(key)

    async def find(self, session_id: SessionId, name_or_id: str) -> FileRow | None:
        def look(connection: sa.Connection) -> FileRow | None:
            found = rows.get(connection, session_id, name_or_id)
            if found is None and (key := key_in(session_id, name_or_id)) is not None:
                return next(iter(rows.of_content(connection, session_id, key)), None)
            return found

        return await self.database.read(look)

    async def list(self, session_id: SessionId, *, after: str = "", limit: int = 10_000) -> list[FileRow]:
        return await self.database.read(lambda connection: rows.page(connection, session_id, after=after, limit=limit))

    async def delete(self, session_id: SessionId, row: FileRow) -> None:
        """The name, then the bytes if nothing else leads to them."""
        if row.origin in OF_THE_LOG:
            raise Conflict(
                f"{row.name!r} belongs to a {'message' if row.origin == 'message' else 'call'}: "
                "it is kept as long as the session is."
            )

        def remove(unit: Unit) -> bool:
            unit.lock(session_id)
            rows.remove(unit, session_id, row.name)
            return rows.is_used(unit.connection, session_id, row.key)

        if await self.database.transaction(remove, name="file"):
            return
        if row.key != content_key(row.key):
            await self.files.remove(row.key)
            return
        # Kept by an earlier version, under the key of all that has this content.
        data = await self.files.find(row.key)
        await self.files.remove(row.key)
        used = await self.database.read(lambda connection: rows.is_used(connection, session_id, row.key))
        if used and data is not None:  # somebody kept the same meanwhile
            await self.files.put(session_id, data)

    async def _there(self, session_id: SessionId, owner_id: str) -> None:
        look = partial(sessions.get, session_id=session_id, owner_id=owner_id)
        if await self.database.read(look, is_single=True) is None:
            why = partial(no_such_session, session_id=session_id, owner_id=owner_id)
            raise await self.database.read(why, is_single=True)


def key_in(session_id: SessionId, file_id: str) -> str | None:
    """Of a file with this id, in a session or in one that it was forked from: content has one id in each."""
    if session_of_file(file_id) is None:
        return None
    return f"{session_id}/{file_key(file_id).rpartition('/')[2]}"
