"""The files of one session: given by people, by messages and by tools."""

from outlast import paging
from outlast.errors import NotFound
from outlast.handles import reading
from outlast.handles.services.services import Services
from outlast.ids import OwnerId, SessionId
from outlast.paging import Page
from outlast.store.files.session_files import SessionFiles
from outlast.store.repositories.files import FileRow
from outlast.values import file_name
from outlast.wire.file import FileAnswer


class FilesOfSession:
    """`session.files`: by name. `outlast.files.get(id)` reads one."""

    def __init__(self, services: Services, session_id: SessionId, owner_id: OwnerId) -> None:
        self._services = services
        self._session_id = session_id
        self._owner_id = owner_id
        self._kept = SessionFiles(services.database, services.files)

    async def add(self, name: str, data: bytes, media_type: str = file_name.BINARY) -> FileAnswer:
        """Keep a file. If another one has its name, it gets a number behind it; the same again is the same file.

        Raises `InvalidInput` for a name or type that is none, `BodyTooLarge` for what has no room.
        """
        await self._there()
        masked = self._services.secrets.mask(name)
        row = await self._kept.keep(
            self._session_id, self._owner_id, masked, data, media_type, origin="upload", made_by=self._owner_id
        )
        return self._shown(row)

    async def list(self) -> list[FileAnswer]:
        """All of them, by name."""
        await self._there()
        return [self._shown(row) for row in await self._kept.list(self._session_id)]

    async def page(self, *, after: str = "", limit: int = 100) -> Page[FileAnswer]:
        """Those behind a name; `next` is the name to read on after."""
        await self._there()
        most = paging.clamp(limit)
        rows = await self._kept.list(self._session_id, after=after, limit=most + 1)
        shown = [self._shown(row) for row in rows[:most]]
        return Page(shown, rows[most - 1].name if len(rows) > most else None)

    async def delete(self, name_or_id: str) -> None:
        """By id, all names of it. Raises `NotFound`, and `Conflict` for what belongs to a message or a call."""
        await self._there()
        row = await self._kept.find(self._session_id, name_or_id)
        if row is None:
            raise NotFound("There is no such file.", id=name_or_id)
        while row is not None:
            await self._kept.delete(self._session_id, row)
            row = None if row.name == name_or_id else await self._kept.find(self._session_id, name_or_id)

    async def _there(self) -> None:
        await self._services.database.read(
            lambda connection: reading.there(connection, self._session_id, self._owner_id), is_single=True
        )

    def _shown(self, row: FileRow) -> FileAnswer:
        return FileAnswer(
            id=row.id,
            session_id=row.session_id,
            name=self._services.secrets.mask(row.name),
            media_type=row.media_type,
            bytes=row.bytes,
            origin=row.origin,
            made_by=row.made_by,
            created_at=row.created_at,
        )
