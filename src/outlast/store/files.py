"""Files: large and binary values, outside the rows, in a local folder or an object store."""

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url

from outlast.errors import StoreUnavailable
from outlast.ids import SessionId

_BATCH = 500


def key_of(session_id: SessionId, data: bytes) -> str:
    return f"{session_id}/{hashlib.sha256(data).hexdigest()}"


class FileStore:
    """Values by content: the same bytes of a session are kept once. Written before the row that names them."""

    def __init__(self, where: str) -> None:
        if "://" in where:
            self._store = from_url(where)
        else:
            self._store = LocalStore(Path(where).absolute(), mkdir=True, automatic_cleanup=True)

    async def put(self, session_id: SessionId, data: bytes) -> str:
        key = key_of(session_id, data)
        try:
            await obstore.put_async(self._store, key, data)
        except (BaseError, OSError) as exc:
            raise StoreUnavailable("The file store did not take a file; nothing was lost. Try again.") from exc
        return key

    async def remove_all(self, session_id: SessionId) -> None:
        """Everything of a session, after the rows that named it. Again is harmless, also at the same time."""
        try:
            while found := await self._files_of(session_id):
                with suppress(FileNotFoundError):
                    for start in range(0, len(found), _BATCH):
                        await obstore.delete_async(self._store, found[start : start + _BATCH])
        except (BaseError, OSError) as exc:
            raise StoreUnavailable("The file store did not remove the files of a session. Try again.") from exc

    async def _files_of(self, session_id: SessionId) -> list[str]:
        listing: Any = obstore
        return [each["path"] async for batch in listing.list(self._store, f"{session_id}/") for each in batch]

    async def get(self, key: str) -> bytes:
        try:
            result = await obstore.get_async(self._store, key)
            return bytes(await result.bytes_async())
        except (BaseError, OSError) as exc:
            raise StoreUnavailable(f"The file {key} cannot be read.") from exc
