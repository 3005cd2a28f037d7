"""Files: large and binary values, outside the rows, in a local folder or an object store."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit
from urllib.request import url2pathname
from uuid import uuid4

from outlast import extras
from outlast.clock import monotonic
from outlast.errors import InvalidInput, StoreUnavailable
from outlast.ids import SessionId
from outlast.store.database import ShutdownDeadline
from outlast.store.files.folder import Folder


class Place(Protocol):
    """Where the bytes are. Every method raises `OSError`; what is not there is a `FileNotFoundError`."""

    first: str
    rights: str
    way: str
    """What to do: before it can be used, when it refuses, and when it does not answer."""
    is_remote: bool
    """Each request goes over a network, and may cost money."""

    async def put(self, key: str, data: bytes) -> None: ...

    async def get(self, key: str) -> bytes: ...

    async def keys(self, prefix: str) -> list[str]:
        """Of everything below a prefix."""
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Some of them may be gone already."""
        ...


_READY_SECONDS = 10.0


def key_of(session_id: SessionId, data: bytes) -> str:
    return f"{session_id}/{hashlib.sha256(data).hexdigest()}"


class FileStore:
    """Values by content, written before the row that names them."""

    def __init__(self, where: str) -> None:
        """A folder, or the URL of an object store: its keys and endpoint come from the environment."""
        self._where = where
        self._shutdown_deadline = ShutdownDeadline()
        self._place = _place(where)
        self._was_ready_at = float("-inf")

    async def check(self) -> None:
        """Do once what will be done later; raises an error that says what must be put right before the start."""
        place, where = self._place, self._where
        key = f"check/{uuid4().hex}"
        try:
            await place.put(key, b"check")
            await place.get(key)
            await place.keys("check")
            await place.delete([key])
        except FileNotFoundError as exc:
            raise InvalidInput(f"{where} is not there: {place.first}, or correct the setting.") from exc
        except PermissionError as exc:
            raise InvalidInput(
                f"{where} does not let this process write, read, list and delete: {place.rights} ({exc})."
            ) from exc
        except OSError as exc:
            raise StoreUnavailable(f"{where} cannot be used: {exc}. {place.way}; then start again.") from exc

    async def check_ready(self) -> None:
        """While it runs: raises `StoreUnavailable` if it would not keep a file. Of a store elsewhere, asked seldom."""
        if self._place.is_remote and monotonic() - self._was_ready_at < _READY_SECONDS:
            return
        try:
            await self.check()
        except InvalidInput as exc:
            raise StoreUnavailable(exc.message) from exc
        self._was_ready_at = monotonic()

    async def put(self, session_id: SessionId, data: bytes) -> str:
        """Kept as long as the session is: many rows may lead to it, and no one of them owns it."""
        return await self._put(key_of(session_id, data), data)

    async def put_copy(self, session_id: SessionId, data: bytes) -> str:
        """For one row alone, which may remove it at any time: nobody else is ever given this key."""
        return await self._put(f"{key_of(session_id, data)}.{uuid4().hex}", data)

    async def _put(self, key: str, data: bytes) -> str:
        try:
            await self._place.put(key, data)
        except OSError as exc:
            raise self._unavailable("The file store did not take a file; nothing was lost. Try again.") from exc
        return key

    async def remove(self, key: str) -> None:
        """One file, after the row that named it. Again is harmless."""
        try:
            await self._place.delete([key])
        except OSError as exc:
            raise self._unavailable("The file store did not remove a file. Try again.") from exc

    async def remove_all(self, session_id: SessionId) -> None:
        """Everything of a session, after the rows that named it. Again is harmless, also at the same time."""
        try:
            while found := await self._place.keys(session_id):
                await self._place.delete(found)
        except OSError as exc:
            raise self._unavailable("The file store did not remove the files of a session. Try again.") from exc

    async def get(self, key: str) -> bytes:
        try:
            return await self._place.get(key)
        except OSError as exc:
            raise self._unavailable(f"The file {key} cannot be read now. Try again.") from exc

    async def find(self, key: str) -> bytes | None:
        """None for a file that is not there."""
        try:
            return await self._place.get(key)
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise self._unavailable("A file cannot be read now. Try again.") from exc

    async def find_content(self, key: str) -> bytes | None:
        """The same, or else any copy of that content: one that lost its name to a later file, for example."""
        if (data := await self.find(key)) is not None:
            return data
        try:
            copies = [each for each in await self._place.keys(key.partition("/")[0]) if each.startswith(f"{key}.")]
        except OSError as exc:
            raise self._unavailable("A file cannot be read now. Try again.") from exc
        for each in copies:
            if (data := await self.find(each)) is not None:
                return data
        return None

    def begin_shutdown(self, seconds: float) -> None:
        """This process ends: from then on nobody waits for a store that is away."""
        self._shutdown_deadline.begin(seconds)

    def _unavailable(self, message: str) -> BaseException:
        return self._shutdown_deadline.mark(StoreUnavailable(message))


def _place(where: str) -> Place:
    if "://" in where and not where.startswith("file://"):
        extras.need("s3", f"files={where!r}")
        from outlast.store.files.object_store import ObjectStore

        return ObjectStore(where)
    path = Path(url2pathname(urlsplit(where).path) if where.startswith("file://") else where)
    try:
        return Folder(path)
    except OSError as exc:
        raise InvalidInput(f"files={where!r} is no folder that this process can use: {exc}.") from exc
