"""Files that are kept with a session: images and artifacts of calls, files of messages, values too large for a row."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import sqlalchemy as sa
from pydantic_core import from_json

from outlast import ids
from outlast.errors import NotFound
from outlast.events.types import EventType
from outlast.handles import reading
from outlast.handles.one_session.files import FilesOfSession
from outlast.handles.services.services import Services
from outlast.ids import OwnerId, SessionId
from outlast.store.files.spill import unpack
from outlast.store.repositories import files as rows
from outlast.store.repositories import folds
from outlast.store.tables import events, inputs, tasks
from outlast.values import row_json

_REFERENCE = b'$file"'
_TYPE = re.compile(r"(?a)[\w.+-]{1,100}/[\w.+-]{1,100}")
_BINARY = "application/octet-stream"
_MAGIC: Mapping[bytes, str] = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"%PDF-": "application/pdf",
}


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
    """The files of one owner. Another owner's id, an unknown id and that of a file that is gone get the same answer."""

    def __init__(self, services: Services, owner_id: OwnerId) -> None:
        self._services = services
        self._owner_id = owner_id

    async def get(self, file_id: str) -> StoredFile:
        """The whole file, with the name and the type that were said when it was kept."""
        session_id = ids.session_of_file(file_id)
        if session_id is None:
            raise _unknown(file_id)

        key = ids.file_key(file_id)

        def look(connection: sa.Connection) -> tuple[str, Mapping[str, Any] | None]:
            reading.there(connection, session_id, self._owner_id)
            named = rows.of_content(connection, session_id, key)
            if named:
                return named[0].key, {"name": named[0].name, "media_type": named[0].media_type}
            return key, _said_of(connection, session_id, file_id)

        try:
            copy, said = await self._services.database.read(look)
        except NotFound:
            raise _unknown(file_id) from None
        data = await self._services.files.find(copy)
        if data is None:
            data = await self._services.files.find_content(key)
        if data is None:
            raise _unknown(file_id)
        if said is not None:
            name = self._services.shown.value(said.get("name"))
            return StoredFile(file_id, name if isinstance(name, str) else None, _type(said.get("media_type")), data)
        return await self._value(file_id, session_id, data)

    async def delete(self, file_id: str) -> None:
        """All names of it. Raises `NotFound`, and `Conflict` for what belongs to a message or a call."""
        session_id = ids.session_of_file(file_id)
        if session_id is None:
            raise _unknown(file_id)
        try:
            await FilesOfSession(self._services, session_id, self._owner_id).delete(file_id)
        except NotFound:
            raise _unknown(file_id) from None

    async def _value(self, file_id: str, session_id: SessionId, data: bytes) -> StoredFile:
        """What the runtime itself put aside: a text, JSON, or a file of an answer."""
        media_type = next((each for sign, each in _MAGIC.items() if data.startswith(sign)), None)
        if media_type is not None:
            return StoredFile(file_id, None, media_type, data)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            kind = "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else _BINARY
            return StoredFile(file_id, None, kind, data)
        media_type = "text/plain"
        try:
            value = from_json(data)
        except ValueError:
            value = None
        if isinstance(value, dict | list):
            media_type = "application/json"
            if _REFERENCE in data and all(each.startswith(f"{session_id}/") for each in _keys(value)):
                text = (await unpack(self._services.files, text)).decode()
        return StoredFile(file_id, None, media_type, self._services.shown.value(text).encode())


def _unknown(file_id: str) -> NotFound:
    return NotFound("There is no such file.", id=file_id)


def _type(said: Any) -> str:
    return said.lower() if isinstance(said, str) and _TYPE.fullmatch(said) else _BINARY


def _keys(value: Any) -> Iterable[str]:
    """All that a stored value refers to."""
    if isinstance(value, list):
        for each in cast(list[Any], value):
            yield from _keys(each)
    elif isinstance(value, dict):
        for name, each in cast(dict[str, Any], value).items():
            if name == "$file":
                yield str(cast(dict[str, Any], each).get("key") if isinstance(each, dict) else each)
            else:
                yield from _keys(each)


def _said_of(connection: sa.Connection, session_id: SessionId, file_id: str) -> Mapping[str, Any] | None:
    """What was said of a file when it was kept: with a message, by a task, or by a call within its turn."""
    places = (
        (inputs.c.body, inputs.c.session_id == session_id),
        (tasks.c.artifacts, tasks.c.session_id == session_id),
        (events.c.data, sa.and_(events.c.session_id == session_id, events.c.type == EventType.CALL_ENDED.value)),
    )
    for column, chosen in places:
        found = connection.execute(sa.select(column).where(chosen, column.contains(file_id, autoescape=True)).limit(1))
        for text in found.scalars():
            if (said := _named_in(text, file_id)) is not None:
                return said
    for row in folds.containing(connection, session_id, file_id, type=EventType.CALL_ENDED):
        if (said := _named_in(row["data"], file_id)) is not None:
            return said
    return None


def _named_in(text: str, file_id: str) -> Mapping[str, Any] | None:
    value = row_json.read(text)
    fields = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    listed: Any = [fields.get("files"), fields.get("artifacts"), value if isinstance(value, list) else None]
    for each in (entry for entries in listed if isinstance(entries, list) for entry in cast(list[Any], entries)):
        if isinstance(each, dict) and cast(dict[str, Any], each).get("id") == file_id:
            return cast(dict[str, Any], each)
    return None
