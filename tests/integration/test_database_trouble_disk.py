"""A disk without room, a file that another program holds: 503 and why, nothing half-written, then it goes on."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest
import sqlalchemy as sa
from asyncpg.exceptions import DiskFullError
from fastapi import Request
from sqlalchemy import event

from outlast import Outlast
from outlast.store.sqlite import database as sqlite
from outlast.testing import ScriptedModel, gate, text
from tests.support.moments.checkpoint import Checkpoint
from tests.support.network.server import serving
from tests.support.network.sse_reader import reading
from tests.support.turns.runtime import Runtime

LETTERS = "an unusually long letter. " * 2_000
MOST_PAGES = 0xFFFFFFFE


class SmallDisk:
    """Limits a SQLite file to the pages that it has: SQLite itself then says that the disk is full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._pages = MOST_PAGES
        plain = sqlite.make_engine

        def make_engine(path: Path, *, durability: str) -> sa.Engine:
            engine = plain(path, durability=durability)
            event.listen(engine, "connect", lambda connection, _: connection.execute(self._pragma))  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType, reportUnknownArgumentType]
            return engine

        monkeypatch.setattr(sqlite, "make_engine", make_engine)

    @property
    def _pragma(self) -> str:
        return f"PRAGMA max_page_count = {self._pages}"

    async def limit(self, outlast: Outlast[Any, Any], pages: int) -> None:
        """For the connection that writes, and for those that are made after it."""
        self._pages = pages
        await outlast.database.transaction(
            lambda unit: unit.connection.exec_driver_sql(self._pragma).scalar(), name="limit"
        )


async def anybody(_: Request) -> str:
    return "ada"


@asynccontextmanager
async def talking(
    runtime: Runtime, here: Checkpoint
) -> AsyncGenerator[tuple[Outlast[Any, Any], httpx2.AsyncClient, str]]:
    """A server with a turn in the middle of its answer; the path of its session."""

    def reply(messages: list[Any]) -> Any:
        return [text("Half a "), gate(here), text("sentence.")] if len(messages) == 1 else "Heard."

    async with serving(runtime(ScriptedModel(reply)), authenticate=anybody) as server:
        client = server.with_headers({})
        session_id = (await client.post("/v1/sessions", json={})).json()["id"]
        path = f"/v1/sessions/{session_id}"
        await client.post(f"{path}/messages", json={"text": "hello"})
        await here.reached()
        yield server.outlast, client, path


def check_refused(answer: httpx2.Response, why: str) -> None:
    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable"), answer.text
    assert int(answer.headers["Retry-After"]) >= 1
    assert why in answer.json()["detail"]
    assert "try again" in answer.json()["detail"].lower()


async def check_goes_on(client: httpx2.AsyncClient, path: str, *, refused: str) -> None:
    """The turn that waited has ended, the session takes messages, and of what was refused nothing stands."""
    result = (await client.get(f"{path}/result", params={"wait": 30})).json()
    assert (result["state"], result["text"]) == ("completed", "Half a sentence.")
    assert (await client.get("/readyz")).status_code == 200
    sent = await client.post(f"{path}/messages", json={"text": "and now?"})
    assert sent.status_code == 202
    assert (await client.get(f"{path}/result", params={"wait": 30})).json()["text"] == "Heard."
    log = (await client.get(f"{path}/events")).json()["items"]
    types = [each["type"] for each in log]
    assert (types.count("turn.completed"), types.count("turn.resumed")) == (2, 0)
    accepted = [each["data"]["text"] for each in log if each["type"] == "input.accepted"]
    assert refused not in accepted
    assert accepted[0] == "hello"
    numbers = [each["number"] for each in log]
    assert numbers == sorted(set(numbers))
    assert len((await client.get(f"{path}/messages")).json()["items"]) == 4


async def test_a_full_disk_under_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P1, DESIGN 4: what fits is taken, what does not is refused whole; with room, the same process goes on."""
    disk, here = SmallDisk(monkeypatch), Checkpoint()
    async with talking(Runtime(tmp_path / "app.db"), here) as (outlast, client, path):
        async with reading(client, f"{path}/events") as reader:
            await disk.limit(outlast, 1)
            while (answer := await client.post("/v1/sessions", json={"title": "x" * 500})).status_code == 201:
                continue
            check_refused(answer, "disk of the database is full")
            check_refused(await client.post(f"{path}/messages", json={"text": LETTERS}), "full")
            here.open()
            assert (await client.get(path)).status_code == 200, "what is there can be read"
            assert not reader.is_over
            await disk.limit(outlast, MOST_PAGES)
            await reader.until(lambda told: told[-1].data["type"] == "turn.completed")
        await check_goes_on(client, path, refused=LETTERS)
    with closing(sqlite3.connect(tmp_path / "app.db")) as file:
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert file.execute("PRAGMA foreign_key_check").fetchall() == []


async def test_a_file_that_another_program_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P1: a tool of the operator keeps the file locked; writes are refused after a while, and then go on."""
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.1)
    here = Checkpoint()
    async with talking(Runtime(tmp_path / "app.db"), here) as (_, client, path):
        with closing(sqlite3.connect(tmp_path / "app.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            check_refused(await client.post(f"{path}/messages", json={"text": LETTERS}), "locked")
            check_refused(await client.get("/readyz"), "locked")
            here.open()
            assert (await client.get(path)).status_code == 200
            other.execute("ROLLBACK")
        await check_goes_on(client, path, refused=LETTERS)


async def test_a_full_disk_under_postgresql(ready_postgres_url: str, tmp_path: Path) -> None:
    """P1, DESIGN 4: the server says so in the middle of a transaction; nothing of it stands, and it heals."""
    here = Checkpoint()
    runtime = Runtime(ready_postgres_url, files=str(tmp_path / "files"))
    async with talking(runtime, here) as (_, client, path), connected(ready_postgres_url) as operator:
        async with reading(client, f"{path}/events") as reader:
            await operator.execute(_FILL)
            with pytest.raises(DiskFullError):
                await operator.execute(
                    "UPDATE sessions SET title = 'x'; DELETE FROM feed; INSERT INTO feed SELECT * FROM feed"
                )
            check_refused(await client.post(f"{path}/messages", json={"text": LETTERS}), "disk of the database is full")
            check_refused(await client.post("/v1/sessions", json={}), "disk of the database is full")
            here.open()
            assert (await client.get(path)).json()["title"] == "hello", "what is there can be read"
            assert not reader.is_over
            await operator.execute(_MAKE_ROOM)
            await reader.until(lambda told: told[-1].data["type"] == "turn.completed")
        await check_goes_on(client, path, refused=LETTERS)


_FILL = """
CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE EXCEPTION 'could not extend file "base/1": No space left on device' USING ERRCODE = 'disk_full';
END $$;
CREATE TRIGGER no_room AFTER INSERT ON events EXECUTE FUNCTION no_room();
CREATE TRIGGER no_room AFTER INSERT ON feed EXECUTE FUNCTION no_room();
"""
"""Where the file of a table must grow, the server fails as it does on a full disk: after other rows were written."""
_MAKE_ROOM = "DROP FUNCTION no_room CASCADE"


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[Any]:
    driver: Any = asyncpg
    connection = await driver.connect(url.replace("+asyncpg", ""))
    try:
        yield connection
    finally:
        await asyncio.shield(connection.close())


async def test_a_process_ends_also_when_nothing_can_be_written(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1, P4: nobody waits for ever for an end that cannot be written; the next process goes on with the turn."""
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.1)
    runtime = Runtime(database_url, files=str(tmp_path / "files"))
    async with AsyncExitStack() as running:
        _, _, path = await running.enter_async_context(talking(runtime, Checkpoint()))
        async with asyncio.timeout(20), unwritable(database_url):
            await running.aclose()
    async with runtime(lambda _: "A whole sentence.") as outlast:
        session = await outlast.owned_by("ada").get(path.rpartition("/")[2])
        outcome = await session.result(wait=30)
        assert outcome is not None
        assert (outcome.state, outcome.text, outcome.attempt) == ("completed", "A whole sentence.", 2)


@asynccontextmanager
async def unwritable(url: str) -> AsyncGenerator[None]:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
        return
    async with connected(url) as operator:
        await operator.execute(_FILL)
        try:
            yield
        finally:
            await operator.execute(_MAKE_ROOM)
