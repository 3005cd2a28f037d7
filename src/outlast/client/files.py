"""Files as a client holds them: read by the ids that messages, calls, tasks and events tell."""

from dataclasses import dataclass
from email.message import Message
from urllib.parse import unquote

from outlast.client.connection import Connection, path


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
