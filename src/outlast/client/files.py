"""Files as a client holds them: read by the ids that messages, calls, tasks and events tell."""

from dataclasses import dataclass
from email.message import Message
from urllib.parse import unquote

from outlast.client.connection import Connection, path
from outlast.paging import Page
from outlast.wire.file import FileAnswer
from outlast.wire.forms import ListOf


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file with its bytes. `name` None: nobody has given it one."""

    id: str
    name: str | None
    media_type: str
    data: bytes

    @property
    def bytes(self) -> int:
        return len(self.data)


class FilesOfSession:
    """`session.files`: those that were given, those of messages, and those that tools made."""

    def __init__(self, connection: Connection, session_id: str) -> None:
        self._connection = connection
        self._path = path("sessions", session_id, "files")
        self._files = Files(connection)

    async def add(self, name: str, data: bytes, media_type: str = "application/octet-stream") -> FileAnswer:
        """Keep a file. If another one has its name, it gets a number behind it; the same again is the same file."""
        answer = await self._connection.answer(
            "POST", self._path, params={"name": name}, content=data, media_type=media_type, is_repeatable=True
        )
        return FileAnswer.model_validate_json(answer.content)

    async def list(self) -> list[FileAnswer]:
        """All of them, by name."""
        found: list[FileAnswer] = []
        page = await self.page()
        found += page.items
        while page.next is not None:
            page = await self.page(after=page.next)
            found += page.items
        return found

    async def page(self, *, after: str = "", limit: int = 100) -> Page[FileAnswer]:
        """Those behind a name; `next` is the name to read on after."""
        answer = await self._connection.get(self._path, after=after, limit=limit)
        page = ListOf[FileAnswer].model_validate(answer)
        return Page(page.items, page.next)

    async def delete(self, name_or_id: str) -> None:
        """By id, all names of it. Raises `NotFound`, and `Conflict` for what belongs to a message or a call."""
        named = [each.id for each in await self.list() if each.name == name_or_id]
        await self._files.delete(named[0] if named else name_or_id)


class Files:
    """The files of the caller. Another owner's id, an unknown one and that of a file that is gone: the same answer."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, file_id: str) -> StoredFile:
        """The whole file, with the name and the type that were said when it was kept."""
        answer = await self._connection.answer("GET", path("files", file_id))
        name = answer.headers.get("Content-Disposition", "").rpartition("filename*=UTF-8''")[2]
        told = Message()
        told["Content-Type"] = answer.headers.get("Content-Type", "application/octet-stream")
        name = unquote(name)
        return StoredFile(file_id, None if name in ("", file_id) else name, told.get_content_type(), answer.content)

    async def delete(self, file_id: str) -> None:
        """All names of it. Raises `NotFound`, and `Conflict` for what belongs to a message or a call."""
        await self._connection.ask("DELETE", path("files", file_id), is_repeatable=False)
