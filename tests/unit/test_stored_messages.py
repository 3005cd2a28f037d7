"""History that an older pydantic-ai wrote is read by the one that is installed, and stays what it was."""

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_core import from_json, to_json

from outlast.agents.messages import history
from outlast.ids import SessionId
from outlast.store.files.file_store import FileStore
from tests.support.logs.histories import check_history

DATA = Path(__file__).parents[1] / "data"
FILES = sorted(DATA.glob("messages-*.json"))
KINDS = {
    "system-prompt",
    "user-prompt",
    "tool-return",
    "retry-feedback",
    "text",
    "thinking",
    "tool-call",
    "builtin-tool-call",
    "builtin-tool-return",
    "file",
}


def bodies(path: Path) -> Sequence[str]:
    return [to_json(each).decode() for each in from_json(path.read_bytes())]


async def load(path: Path, files: FileStore) -> list[ModelMessage]:
    return [await history.decode(files, body) for body in bodies(path)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
async def test_every_stored_message_loads_and_round_trips(path: Path, tmp_path: Path) -> None:
    """P1: accepted means kept, also over an upgrade: nothing of a stored message is lost or changed."""
    files = FileStore(str(tmp_path / "files"))
    messages = await load(path, files)
    assert {part.part_kind for message in messages for part in message.parts} >= KINDS
    check_history(messages)
    for message in messages:
        again = await history.decode(files, await history.encode(files, SessionId("ses_test"), message))
        assert again == message


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
async def test_what_was_stored_is_what_is_loaded(path: Path, tmp_path: Path) -> None:
    """P1: every field that the older version wrote has the same value now."""
    messages = await load(path, FileStore(str(tmp_path / "files")))
    for body, message in zip(bodies(path), messages, strict=True):
        assert _changes(from_json(body), from_json(history.encode_small(message))) == []


def _changes(old: Any, new: Any, where: str = "") -> list[str]:
    """The paths at which the new value is not what the old one was; fields that are new do not count."""
    if isinstance(old, dict) and isinstance(new, dict):
        fields, now = cast(dict[str, Any], old), cast(dict[str, Any], new)
        return [each for name in fields for each in _changes(fields[name], now.get(name), f"{where}.{name}")]
    if isinstance(old, list) and isinstance(new, list):
        pairs = enumerate(zip_longest(cast(list[Any], old), cast(list[Any], new)))
        return [each for at, (one, other) in pairs for each in _changes(one, other, f"{where}[{at}]")]
    return [] if old == new else [f"{where}: {old!r} is now {new!r}"]


def test_the_lowest_supported_version_is_among_the_files() -> None:
    """A lower bound that moves takes its file along: `make_messages.py` writes it."""
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    lowest = text.partition("pydantic-ai-slim[mcp]>=")[2].partition(",")[0]
    assert any(path.stem.startswith(f"messages-{lowest}.") for path in FILES), f"no messages of {lowest}"
