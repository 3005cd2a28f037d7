"""Files: large and binary values, outside the rows, in a local folder or an object store."""

import hashlib
from pathlib import Path

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url

from outlast.errors import StoreUnavailable
from outlast.ids import SessionId


def key_of(session_id: SessionId, data: bytes) -> str:
    return f"{session_id}/{hashlib.sha256(data).hexdigest()}"


class FileStore:
    """Values by content: the same bytes of a session are kept once. Written before the row that names them."""

    def __init__(self, where: str) -> None:
        if "://" in where:
            self._store = from_url(where)
        else:
            self._store = LocalStore(Path(where).absolute(), mkdir=True)

    async def put(self, session_id: SessionId, data: bytes) -> str:
        key = key_of(session_id, data)
        try:
            await obstore.put_async(self._store, key, data)
        except (BaseError, OSError) as exc:
            raise StoreUnavailable("The file store did not take a file; nothing was lost. Try again.") from exc
        return key

    async def get(self, key: str) -> bytes:
        try:
            result = await obstore.get_async(self._store, key)
            return bytes(await result.bytes_async())
        except (BaseError, OSError) as exc:
            raise StoreUnavailable(f"The file {key} cannot be read.") from exc
