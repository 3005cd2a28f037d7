"""Files: large and binary values, outside the rows, in a local folder or an object store."""

import hashlib
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import LocalStore, from_url

from outlast.errors import InvalidInput, StoreUnavailable
from outlast.ids import SessionId
from outlast.store.database import Farewell

_BATCH = 500
_RETRIES: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}
"""Then whoever asked is told, and running work tries again: nobody waits for minutes without a word."""


def key_of(session_id: SessionId, data: bytes) -> str:
    return f"{session_id}/{hashlib.sha256(data).hexdigest()}"


class FileStore:
    """Values by content: the same bytes of a session are kept once. Written before the row that names them."""

    def __init__(self, where: str) -> None:
        """A folder, or the URL of an object store: its keys and endpoint come from the environment."""
        self._where = where
        self._farewell = Farewell()
        self._is_remote = "://" in where
        if not self._is_remote:
            self._store = LocalStore(Path(where).absolute(), mkdir=True, automatic_cleanup=True)
            return
        try:
            self._store = from_url(where, retry_config=_RETRIES)
        except (BaseError, ValueError) as exc:
            raise InvalidInput(f"files={where!r} names no store of files: {_reason(exc)}.") from exc

    async def check(self) -> None:
        """Do once what will be done later; raises an error that says what must be put right before the start."""
        if not self._is_remote:
            return
        key = f"check/{uuid4().hex}"
        try:
            await obstore.put_async(self._store, key, b"check")
            await obstore.get_async(self._store, key)
            await self._files_of("check")
            await obstore.delete_async(self._store, [key])
        except FileNotFoundError as exc:
            raise InvalidInput(f"{self._where} is not there: make the bucket first, or correct the setting.") from exc
        except (PermissionDeniedError, UnauthenticatedError) as exc:
            raise InvalidInput(
                f"{self._where} does not let this process write, read, list and delete: check the keys in the "
                f"environment and the rights that they have ({_reason(exc)})."
            ) from exc
        except (BaseError, OSError) as exc:
            raise StoreUnavailable(
                f"{self._where} cannot be used: {_reason(exc)}. Check the endpoint and the keys in the environment; "
                "then start again."
            ) from exc

    async def put(self, session_id: SessionId, data: bytes) -> str:
        key = key_of(session_id, data)
        try:
            await obstore.put_async(self._store, key, data)
        except (BaseError, OSError) as exc:
            raise self._unavailable("The file store did not take a file; nothing was lost. Try again.") from exc
        return key

    async def remove_all(self, session_id: SessionId) -> None:
        """Everything of a session, after the rows that named it. Again is harmless, also at the same time."""
        try:
            while found := await self._files_of(session_id):
                with suppress(FileNotFoundError):
                    for start in range(0, len(found), _BATCH):
                        await obstore.delete_async(self._store, found[start : start + _BATCH])
        except (BaseError, OSError) as exc:
            raise self._unavailable("The file store did not remove the files of a session. Try again.") from exc

    async def _files_of(self, prefix: str) -> list[str]:
        listing: Any = obstore
        return [each["path"] async for batch in listing.list(self._store, f"{prefix}/") for each in batch]

    async def get(self, key: str) -> bytes:
        try:
            result = await obstore.get_async(self._store, key)
            return bytes(await result.bytes_async())
        except (BaseError, OSError) as exc:
            raise self._unavailable(f"The file {key} cannot be read now. Try again.") from exc

    def leave(self, seconds: float) -> None:
        """This process ends: from then on nobody waits for a store that is away."""
        self._farewell.begin(seconds)

    def _unavailable(self, message: str) -> BaseException:
        return self._farewell.tell(StoreUnavailable(message))


def _reason(exc: BaseException) -> str:
    """Without what a server adds in its own format, and the insides of a library."""
    return str(exc).strip().partition("\n")[0].partition(": <")[0].rstrip(".")
