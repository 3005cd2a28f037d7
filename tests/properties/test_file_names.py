"""Whatever somebody calls a file: it is kept under that name or refused in words, and no name leads to a place."""

import asyncio
import re
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import outlast as public
from outlast import Session
from outlast.errors import InvalidInput, NotFound
from outlast.testing import ScriptedModel, call
from outlast.values.file_name import wrong_with
from outlast.wire.attachment import Attachment
from tests.support.turns.runtime import Runtime

SECRET = b"nobody may read this"
SHOWN = ".. . / \\ %2e%2e %2f ~ C: file: // a secret.txt ses_x etc passwd con nul .txt | * ? \" ' ${HOME} `id` ; é"
PIECES = st.sampled_from([*SHOWN.split(" "), " ", "\0", "\n", "\u202e", "\u200b", "\ud800"])
NAMES = st.lists(PIECES, min_size=1, max_size=8).map("".join) | st.text(st.characters(), max_size=260)
KEY = re.compile(r"names\.db\.files/ses_\w+/[0-9a-f]{64}(\.[0-9a-f]{32})?")


async def taken_or_refused(session: Session, name: str, data: bytes) -> str | None:
    """What is wrong with it, in words."""
    try:
        kept = await session.files.add(name, data)
    except InvalidInput as exc:
        return exc.message.partition(": ")[2]
    number = re.escape(name.rpartition(".")[0] or name) + r" \(\d+\).*"
    assert kept.name == name or re.fullmatch(number, kept.name, re.DOTALL)
    return None


def fits(name: str) -> bool:
    """A message with a NUL or half a character in the name of a file is refused whole; other names are made to fit."""
    return "\0" not in name and name.isprintable()


async def written(name: str, data: str) -> str | None:
    """The same for a tool."""
    try:
        await public.files.write(name, data)
        assert (await public.files.read(name)).decode() == data
        await public.files.delete(name)
    except InvalidInput as exc:
        return exc.message.partition(": ")[2]
    return None


def on_disk(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


async def check(folder: Path, names: list[str]) -> None:
    (folder / "secret.txt").write_bytes(SECRET)
    said = dict[str, str | None]()

    async def write_all() -> str:
        for name in names:
            said[name] = await written(f"{name}x", "written")
        return "written"

    model = ScriptedModel([call("write_all"), "Done."])
    runtime: Any = Runtime(folder / "names.db")
    async with runtime(model, tools=[write_all]) as outlast:
        session = await outlast.sessions.create()
        for number, name in enumerate(names):
            await taken_or_refused(session, name, f"content {number}".encode())
            for wrong in (name, f"fil_{name}", f"{session.id}/{name}"):
                try:
                    await outlast.files.get(wrong)
                except NotFound:
                    continue
                raise AssertionError(f"{wrong!r} led to something")
        files = [Attachment(each, f"other {number}".encode()) for number, each in enumerate(names) if fits(each)]
        outcome = await session.ask("Go.", files=files)
        assert outcome.calls[0].result == "written", outcome
        for number, name in enumerate(names):
            assert await taken_or_refused(session, f"{name}x", f"again {number}".encode()) == said[name]
        kept = await session.files.list()
        assert len({each.name for each in kept}) == len(kept)
        assert [each.name for each in kept if wrong_with(each.name)] == []
        for each in kept:
            assert SECRET not in (await outlast.files.get(each.id)).data
    left = [each for each in on_disk(folder) if not each.startswith("names.db-")]
    others = [each for each in left if not KEY.fullmatch(each)]
    assert others == ["names.db", "names.db.lock", "secret.txt"]
    assert (folder / "secret.txt").read_bytes() == SECRET


@settings(max_examples=6, deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=15, unique=True))
def test_no_name_leads_to_a_place(names: list[str]) -> None:
    """D12, G2: given, sent with a message, written by a tool, asked for; on disk are only names of the store's own."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder), names))
