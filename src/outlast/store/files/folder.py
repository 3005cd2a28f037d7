"""Files in a local folder, or in one that all processes reach."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

_TRIES = 5


class Folder:
    """A file is there whole or not at all, also after a power cut. Raises `OSError`."""

    first = "make the folder first"
    rights = "check who owns it and what its mode allows"
    way = "Check the path and the disk"
    is_remote = False

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self._root.mkdir(parents=True, exist_ok=True)

    async def put(self, key: str, data: bytes) -> None:
        await asyncio.to_thread(self._put, self._path(key), data)

    async def get(self, key: str) -> bytes:
        return await asyncio.to_thread(self._path(key).read_bytes)

    async def keys(self, prefix: str) -> list[str]:
        """The keys of everything directly below a prefix; what a crash left half written too."""
        folder = self._path(prefix)
        return [f"{prefix}/{name}" for name in await asyncio.to_thread(_listed, folder)]

    async def delete(self, keys: Sequence[str]) -> None:
        await asyncio.to_thread(_delete, [self._path(each) for each in keys])

    def _path(self, key: str) -> Path:
        """Never outside of the folder, whatever a key says."""
        parts = key.split("/")
        if any(each in ("", ".", "..") or "\\" in each or "\0" in each for each in parts):
            raise FileNotFoundError(f"{key!r} is not the name of a file here")
        return self._root.joinpath(*parts)

    def _put(self, path: Path, data: bytes) -> None:
        for _ in range(_TRIES - 1):
            # The folder may go meanwhile with the last file of a session.
            with suppress(FileNotFoundError):
                return _write(path, data)
        return _write(path, data)


def _write(path: Path, data: bytes) -> None:
    is_new = not path.parent.is_dir()
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync(path.parent)
    if is_new:
        _sync(path.parent.parent)


def _sync(folder: Path) -> None:
    """A name in a folder outlives a power cut only when the folder is written too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def _delete(paths: Sequence[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in paths}:
        with suppress(OSError):  # something was put there meanwhile, or another process was faster
            folder.rmdir()
