"""Files in an object store by URL, such as `s3://bucket/prefix`."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import from_url

from outlast.errors import InvalidInput

_BATCH = 500
_RETRIES: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}
"""Then whoever asked is told, and running work tries again: nobody waits for minutes without a word."""


class ObjectStore:
    """Keys and endpoint come from the environment. Raises `OSError`."""

    first = "make the bucket first"
    rights = "check the keys in the environment and the rights that they have"
    way = "Check the endpoint and the keys in the environment"
    is_remote = True

    def __init__(self, url: str) -> None:
        try:
            self._store = from_url(url, retry_config=_RETRIES)
        except (BaseError, ValueError) as exc:
            raise InvalidInput(f"files={url!r} names no store of files: {_reason(exc)}.") from exc

    async def put(self, key: str, data: bytes) -> None:
        with _translated():
            await obstore.put_async(self._store, key, data)

    async def get(self, key: str) -> bytes:
        with _translated():
            result = await obstore.get_async(self._store, key)
            return bytes(await result.bytes_async())

    async def keys(self, prefix: str) -> list[str]:
        listing: Any = obstore
        with _translated():
            return [each["path"] async for batch in listing.list(self._store, f"{prefix}/") for each in batch]

    async def delete(self, keys: Sequence[str]) -> None:
        with _translated(), suppress(FileNotFoundError):
            for start in range(0, len(keys), _BATCH):
                await obstore.delete_async(self._store, list(keys[start : start + _BATCH]))


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except (PermissionDeniedError, UnauthenticatedError) as exc:
        raise PermissionError(_reason(exc)) from exc
    except BaseError as exc:
        raise OSError(_reason(exc)) from exc


def _reason(exc: BaseException) -> str:
    """Without what a server adds in its own format, and the insides of a library."""
    return str(exc).strip().partition("\n")[0].partition(": <")[0].rstrip(".")
