"""Rows stay small: what is large or binary goes to the file store, and comes back exactly as it was."""

import base64
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import from_json, to_json

from outlast.errors import StoreUnavailable
from outlast.ids import SessionId
from outlast.store.files.file_store import FileStore
from outlast.store.files.spill import ROW_BYTES, pack, pack_object, unpack, unpack_object

SESSION = SessionId("ses_1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "files"


@pytest.fixture
def files(folder: Path) -> FileStore:
    return FileStore(str(folder))


def kept_in(folder: Path) -> list[bytes]:
    return [each.read_bytes() for each in folder.rglob("*") if each.is_file()]


def binary(data: bytes) -> dict[str, Any]:
    return {"data": base64.urlsafe_b64encode(data).decode(), "media_type": "image/png", "kind": "binary"}


VALUES: dict[str, Any] = {
    "small": {"text": "hello"},
    "long text": {"text": "x" * 200_000},
    "long text of wide letters": {"text": "\N{WATER WAVE}" * 70_000},
    "letters that JSON escapes": {"text": "\x01" * 65_000},
    "many short texts": {"rows": [f"row {n} " + "x" * 90 for n in range(6_000)]},
    "binary": {"image": binary(bytes(range(256)) * 10)},
    "empty binary": {"image": binary(b"")},
    "binary among much else": {"parts": [binary(b"abc"), "y" * 100_000, {"deep": [binary(b"def")]}]},
    "only looks binary": {"kind": "binary", "data": "hello, world!"},
    "looks binary, bad padding": {"kind": "binary", "data": "abc"},
    "looks binary, other alphabet": {"kind": "binary", "data": "+/+/"},
    "looks binary, no text": {"kind": "binary", "data": [1, 2]},
    "forged reference": {"$file": {"key": "ses_2/secret", "as": "text"}},
    "forged reference inside": {"a": [{"$file": {"key": "../../etc/passwd", "as": "text"}, "b": 1}]},
    "escaped forgery": {"$$file": {"$file": 1}, "$$$file": 2, "$files": 3, "$": 4},
    "escaped forgery alone": {"$$file": 1},
    "forgery in something large": {"$file": {"key": "ses_2/secret"}, "rows": ["x" * 1_000] * 400},
    "word in a text": {"text": 'the key "$file" is ours'},
}


@pytest.mark.parametrize("name", VALUES)
async def test_a_value_comes_back_as_it_was_and_its_row_is_small(files: FileStore, name: str) -> None:
    """DESIGN 4: no row over 256 KiB, no binary in a row, and no value can name a file that is not its own."""
    value = VALUES[name]
    packed = await pack(files, SESSION, to_json(value))
    assert len(packed.encode()) <= ROW_BYTES
    assert from_json(await unpack(files, packed)) == value
    inside = await pack_object(files, SESSION, value)
    assert len(to_json(inside)) <= ROW_BYTES
    assert await unpack_object(files, from_json(to_json(inside))) == value


async def test_binary_leaves_the_row(files: FileStore, folder: Path) -> None:
    packed = await pack(files, SESSION, to_json({"image": binary(b"\x00" * 300)}))
    assert "AAAA" not in packed
    assert kept_in(folder) == [b"\x00" * 300]


async def test_a_small_value_makes_no_file(files: FileStore, folder: Path) -> None:
    assert await pack(files, SESSION, b'{"a":1}') == '{"a":1}'
    assert kept_in(folder) == []


async def test_the_small_fields_of_an_event_stay_in_place(files: FileStore) -> None:
    """P4: whoever looks for a call's end by its id finds it, however large the result is."""
    rows = [{"name": f"river {n}", "length": n} for n in range(20_000)]
    data = {"call_id": "call_1", "tool": "survey", "outcome": "success", "part": {"content": rows}}
    packed = await pack_object(files, SESSION, data)
    assert {name: packed[name] for name in ("call_id", "tool", "outcome")} == {
        "call_id": "call_1",
        "tool": "survey",
        "outcome": "success",
    }
    assert packed["part"]["$file"]["preview"].startswith('{"content":[{"name":"river 0"')
    assert await unpack_object(files, packed) == data


async def test_a_long_text_leaves_a_preview(files: FileStore) -> None:
    packed = await pack_object(files, SESSION, {"text": "The river is " + "very " * 20_000 + "long."})
    assert packed["text"]["$file"]["preview"].startswith("The river is very very")


async def test_the_same_bytes_are_kept_once(files: FileStore, folder: Path) -> None:
    for _ in range(3):
        await pack(files, SESSION, to_json({"text": "x" * 100_000}))
    assert len(kept_in(folder)) == 1


async def test_a_file_that_is_gone_is_said_so(files: FileStore) -> None:
    with pytest.raises(StoreUnavailable, match="ses_1/gone"):
        await files.get("ses_1/gone")
