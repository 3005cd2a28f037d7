"""A file is deleted while the same content is kept once more: what was accepted is there."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic_ai import Tool

import outlast as public
from outlast import Outlast, Session
from outlast.errors import NotFound
from outlast.ids import SessionId
from outlast.store.files.file_store import FileStore
from outlast.testing import call
from outlast.wire.attachment import Attachment
from tests.support.turns.runtime import Runtime, scripted

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(92))


def deleting_after_the_next_put(monkeypatch: pytest.MonkeyPatch, delete: Callable[[], Awaitable[None]]) -> None:
    """Between the bytes and the commit that names them: the whole of a deletion, once."""
    waiting = [delete]

    def slow(real: Any) -> Any:
        async def put(self: FileStore, session_id: SessionId, data: bytes) -> str:
            key: str = await real(self, session_id, data)
            while waiting:
                await waiting.pop()()
            return key

        return put

    for name in ("put", "put_copy"):
        if hasattr(FileStore, name):
            monkeypatch.setattr(FileStore, name, slow(getattr(FileStore, name)))


async def with_a_file(outlast: Outlast[Any, Any]) -> Session:
    session = await outlast.sessions.create()
    await session.files.add("old.png", PNG, "image/png")
    return session


async def test_an_upload_is_kept_whose_content_is_deleted_at_once(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1, D12: under another name, and under the same."""
    async with runtime(scripted("Done.")) as outlast:
        session = await with_a_file(outlast)
        deleting_after_the_next_put(monkeypatch, lambda: session.files.delete("old.png"))
        kept = await session.files.add("new.png", PNG, "image/png")
        assert [each.name for each in await session.files.list()] == ["new.png"]
        assert (await outlast.files.get(kept.id)).data == PNG
        monkeypatch.undo()
        deleting_after_the_next_put(monkeypatch, lambda: session.files.delete("new.png"))
        again = await session.files.add("new.png", PNG, "image/png")
        assert (again.id, (await outlast.files.get(again.id)).data) == (kept.id, PNG)
        monkeypatch.undo()
        await session.files.delete("new.png")
        with pytest.raises(NotFound):
            await outlast.files.get(kept.id)
        assert list((runtime.files / session.id).glob("*")) == []


async def test_a_file_of_a_message_is_kept_whose_content_is_deleted_at_once(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1, D12: history is whole, and the next turn reads it."""
    async with runtime(scripted("A river.", "Yes.")) as outlast:
        session = await with_a_file(outlast)
        deleting_after_the_next_put(monkeypatch, lambda: session.files.delete("old.png"))
        await session.ask("What is this?", files=[Attachment("rhine.png", PNG, "image/png")])
        [kept] = await session.files.list()
        assert (kept.name, (await outlast.files.get(kept.id)).data) == ("rhine.png", PNG)
        assert (await session.ask("Sure?")).text == "Yes."


def draw() -> str:
    """Draw."""
    public.artifact("map.png", PNG, "image/png")
    return "Drawn."


async def test_what_a_call_made_is_kept_whose_content_is_deleted_at_once(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1, A3: an artifact of the same content."""
    async with runtime(scripted([call("draw")], "Done."), tools=[Tool(draw)]) as outlast:
        session = await with_a_file(outlast)
        deleting_after_the_next_put(monkeypatch, lambda: session.files.delete("old.png"))
        await session.ask("Draw the river")
        [kept] = await session.files.list()
        assert (kept.name, (await outlast.files.get(kept.id)).data) == ("map.png", PNG)


async def test_what_a_tool_wrote_is_read_by_its_id_when_the_name_has_other_content(runtime: Runtime) -> None:
    """A3, D12: a value goes from one tool to another by its id."""
    read: list[bytes] = []

    async def write() -> str:
        """Write."""
        first = await public.files.write("levels.csv", "3,5")
        await public.files.write("levels.csv", "4,6")
        read.extend([await public.files.read(first), await public.files.read("levels.csv")])
        return first

    async with runtime(scripted([call("write")], "Done."), tools=[Tool(write)]) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Go")
        assert read == [b"3,5", b"4,6"]
