"""Files in a folder: whole or not there, never outside of it, and removed beside others who write."""

import asyncio
import os
from pathlib import Path

import pytest

from outlast.errors import InvalidInput, StoreUnavailable
from outlast.ids import SessionId
from outlast.store.files.file_store import FileStore
from outlast.store.files.folder import Folder

SESSION = SessionId("ses_1")
OUTSIDE = ["../secret", "ses_1/../../secret", "/etc/passwd", "ses_1//x", "", ".", "ses_1/..", "a\\..\\b", "a\0b"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "files"


@pytest.mark.parametrize("key", OUTSIDE)
async def test_a_key_leads_nowhere_else(root: Path, key: str) -> None:
    """G2: keys come from stored rows, and even so are not trusted."""
    (root.parent / "secret").write_text("secret")
    folder = Folder(root)
    for attempt in (folder.get(key), folder.put(key, b"x"), folder.delete([key]), folder.keys(key)):
        with pytest.raises(FileNotFoundError):
            await attempt
    assert (root.parent / "secret").read_text() == "secret"


async def test_a_write_that_fails_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN 4: what was not written whole is not there under its name, and takes no room."""

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    files = FileStore(str(root))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreUnavailable, match="nothing was lost"):
        await files.put(SESSION, b"data")
    assert await Folder(root).keys(SESSION) == []


async def test_a_full_disk_is_said_at_the_start(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    files = FileStore(str(root))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreUnavailable, match=r"No space left.*Check the path and the disk"):
        await files.check()


def test_a_path_that_is_no_folder_is_said(root: Path) -> None:
    root.write_text("a file")
    with pytest.raises(InvalidInput, match="is no folder that this process can use"):
        FileStore(str(root))


async def test_what_a_crash_left_half_written_goes_with_the_session(root: Path) -> None:
    """D10: rows, then files, and nothing stays behind."""
    files = FileStore(str(root))
    await files.put(SESSION, b"data")
    (root / SESSION / ".half.written").write_bytes(b"da")
    await files.remove_all(SESSION)
    assert not (root / SESSION).exists()


async def test_writers_and_removers_do_not_disturb_each_other(root: Path) -> None:
    """D10: the folder of a session comes and goes under those who write."""
    files = FileStore(str(root))
    values = [bytes([each]) for each in range(40)]
    await asyncio.gather(*(files.put(SESSION, each) for each in values), *(files.remove_all(SESSION) for _ in range(5)))
    keys = [await files.put(SESSION, each) for each in values]
    assert [await files.get(each) for each in keys] == values


async def test_a_file_url_is_a_folder(root: Path) -> None:
    files = FileStore(f"{root.as_uri()}/a%20place")
    key = await files.put(SESSION, b"data")
    assert (root / "a place" / key).read_bytes() == b"data"
