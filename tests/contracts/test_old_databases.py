"""Databases that an older commit left behind: they open, all of them reads as it read then, and work goes on in them.

`tests/data/old/make_database.py` made them, and says what is in them.
"""

import gzip
import io
import json
import sqlite3
import tarfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import SecretStr
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage

from outlast import Outlast, OutlastError, Session, Settings
from outlast.testing import ScriptedModel, texts_seen
from tests.data.old.dump import run_sql
from tests.support.logs.histories import check_history
from tests.support.logs.summary import Report, all_events, all_sessions, feed_lines, feed_of, summary_of
from tests.support.stores.postgres import PostgresServer
from tests.support.turns.runtime import FAST

OLD = Path(__file__).parents[1] / "data" / "old"
KEY = "b2xkIGRhdGFiYXNlcyBhcmUgcmVhZCBmb3IgZXZlciE="
PASSWORD = "hunter2-hunter2"
OWNERS = ("local", "bob")
RENAMED: Mapping[str, str] = {}
"""Types of events that are called otherwise by now, by their old name."""


class Old(NamedTuple):
    """A database that nobody has opened since, and what was read from it when it was left."""

    database: str
    files: str
    expected: Mapping[str, Any]

    def open(self, *steps: Any) -> Outlast[None, Any]:
        """With an agent that has none of the tools whose calls stand in the histories."""
        model = ScriptedModel(list(steps) if steps else _answer)
        agent = Agent(model, output_type=[str, Report], name="agent")
        settings = Settings(**FAST, files=self.files, encryption_keys=(SecretStr(KEY),))
        return Outlast(agent, database=self.database, models={"cheap": ScriptedModel(_answer)}, settings=settings)

    @property
    def sessions(self) -> Sequence[Mapping[str, Any]]:
        return self.expected["sessions"]


def _answer(messages: list[ModelMessage]) -> str:
    return f"Still here after {len(texts_seen(messages))} messages."


@cache
def _expected() -> Mapping[str, Any]:
    return json.loads((OLD / "expected.json").read_text())


def _sql(store: str) -> str:
    return gzip.decompress((OLD / f"{store}.sql.gz").read_bytes()).decode()


def _unpack_files(store: str, folder: Path) -> str:
    with tarfile.open(fileobj=io.BytesIO((OLD / f"{store}.files.tar.gz").read_bytes())) as archive:
        archive.extractall(folder, filter="data")
    return str(folder)


def _load_sqlite(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(_sql("sqlite"))


@pytest.fixture(params=["sqlite", "postgres"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Old:
    files = _unpack_files(request.param, tmp_path / "files")
    if request.param == "sqlite":
        database = str(tmp_path / "outlast.db")
        _load_sqlite(Path(database))
    else:
        database = request.getfixturevalue("postgres_url")
        server: PostgresServer = request.getfixturevalue("postgres_server")
        server.runner.run(run_sql(database, _sql("postgres")))
    return Old(database, files, _expected()[request.param])


async def _found(outlast: Outlast[None, Any]) -> list[Session]:
    return [each for owner in OWNERS for each in await all_sessions(outlast, owner)]


def _with_totals(kept: list[Any], read: list[Any]) -> list[Any]:
    """Of a turn whose beginning is gone from the log, its end tells what it used: before, nothing was told of that."""
    found = {each["id"]: each["usage"] for each in read}
    return [
        {**each, "usage": found.get(each["id"], each["usage"])} if not any(each["usage"]) else each for each in kept
    ]


def _renamed(events: Sequence[Sequence[Any]], at: int) -> list[list[Any]]:
    return [[*each[:at], RENAMED.get(each[at], each[at]), *each[at + 1 :]] for each in events]


def _as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


async def test_every_session_reads_as_it_did(old: Old) -> None:
    """P1, D10: attributes, turns, tasks with their output, log, messages, history, inbox and export."""
    async with old.open() as outlast:
        paused = await outlast.paused()
        assert paused is not None
        assert paused.by == "olga"
        found = await _found(outlast)
        assert [each.id for each in found] == [each["id"] for each in old.sessions]
        for session, told in zip(found, old.sessions, strict=True):
            read = _as_json(await summary_of(outlast, session))
            kept = {name: value for name, value in told.items() if name != "imported"}
            kept["events"] = _renamed(kept["events"], 1)
            kept["turns"] = _with_totals(kept["turns"], read["turns"])
            if told["is_open"]:
                _check_what_was_open(kept, read)
            else:
                assert read == kept, told["about"]["title"]


def _check_what_was_open(kept: Mapping[str, Any], read: Mapping[str, Any]) -> None:
    """Whoever opens it gives back what a dead process ran: that is added, and nothing else changes."""
    title = kept["about"]["title"]
    for name in ("events", "messages", "history", "inbox"):
        assert read[name][: len(kept[name])] == kept[name], (title, name)
    for name in ("turns", "tasks"):
        assert [each["id"] for each in read[name]][: len(kept[name])] == [each["id"] for each in kept[name]], title
        over = {each["id"]: each for each in kept[name] if each["state"] not in ("queued", "running")}
        assert {each["id"]: each for each in read[name] if each["id"] in over} == over, (title, name)
    for name in ("title", "preview", "metadata", "model", "agent", "external_id", "is_archived"):
        assert read["about"][name] == kept["about"][name], (title, name)
    assert read["said"] == kept["said"], title
    assert read["export"]["session"] == kept["export"]["session"], title


async def test_every_log_can_be_read_on_from_any_position(old: Old) -> None:
    """C1: by a stream and by small pages; of text that was folded a reader gets just the rest."""
    async with old.open() as outlast:
        for session in await _found(outlast):
            whole = [each for each in await all_events(session) if each.number is not None]
            ends = {(each.number, _end_of(each.data)) for each in whole}
            first, last = whole[0].number or 0, whole[-1].number or 0
            for after in {first, last - 1, last, *range(first, last, 1 + (last - first) // 12)}:
                rest = [each for each in await all_events(session, after=after) if each.number is not None]
                assert [each.number for each in rest] == [each.number for each in whole if (each.number or 0) > after]
                assert {(each.number, _end_of(each.data)) for each in rest} <= ends
                assert await _by_pages(session, after) == [each.number for each in rest]


def _end_of(data: Mapping[str, Any]) -> int | None:
    """How far the text of a part has come with a delta."""
    return data["offset"] + len(data["text"]) if "offset" in data and "text" in data else None


async def _by_pages(session: Session, after: int) -> list[int | None]:
    numbers: list[int | None] = []
    async with session.events(after=after, follow=False) as stream:
        while found := await stream.batch(5):
            assert len(found) <= 5
            numbers += [each.number for each in found]
    return numbers


async def test_every_export_can_be_imported(old: Old) -> None:
    """D10: with the history that it gave then, at its old owner and at another one."""
    async with old.open() as outlast:
        for session, told in zip(await _found(outlast), old.sessions, strict=True):
            document = _as_json(await session.export())
            for owner in ("local", "carol"):
                copy = await outlast.owned_by(owner).import_(document)
                history = await copy.history()
                check_history(history)
                kinds = [part.part_kind for message in history for part in message.parts]
                assert kinds[: len(told["imported"])] == told["imported"], told["about"]["title"]
                assert len(kinds) == len(told["imported"]) or told["is_open"]


async def test_the_feeds_of_owners_read_as_they_did(old: Old) -> None:
    """C1: from the beginning and from the cursor of each event on; what is new comes behind it."""
    gone = old.expected["deleted"]
    async with old.open() as outlast:
        found = await _found(outlast)
        for owner in OWNERS:
            kept = _renamed(old.expected["feeds"][owner], 2)
            feed = await feed_of(outlast, owner)
            lines = feed_lines(feed, found, gone)
            assert lines[: len(kept)] == kept
            for at in range(0, len(feed), 50):
                rest = feed_lines(await feed_of(outlast, owner, after=feed[at].cursor), found, gone)
                known = feed_lines(feed[at + 1 :], found, gone)
                assert rest[: len(known)] == known


async def test_the_rest_of_it_is_there(old: Old) -> None:
    """G2, A11, D10: keys, kept secrets, what was made under an idempotency key, names; what was deleted is gone."""
    keys = old.expected["keys"]
    async with old.open() as outlast:
        opening = {name: await outlast.keys.find(text) for name, text in keys.items()}
        assert {name for name, key in opening.items() if key is not None} == {"admin", "made with", "read"}
        assert len(await outlast.keys.list()) == len(keys)
        assert outlast.secrets.mask(PASSWORD) == "*" * len(PASSWORD)
        for session_id in old.expected["deleted"]:
            with pytest.raises(OutlastError) as refused:
                await outlast.sessions.get(session_id)
            assert refused.value.code == "not_found"
        (named,) = await outlast.sessions.list(external_id="hello-1")
        assert (await outlast.sessions.create(external_id="hello-1")).id == named.id
        repeat = await named.send("Count.", idempotency_key="send-1")
        assert repeat.is_repeat
        assert repeat.turn_id is not None


async def test_work_goes_on_in_it(old: Old) -> None:
    """P1, P5: old sessions take messages, and all that was open comes to an end when the pause does."""
    async with old.open() as outlast:
        assert await outlast.unpause()
        for told in old.sessions:
            if told["is_open"]:
                session = await outlast.owned_by(told["owner"]).get(told["id"])
                outcome = await session.settled(wait=30)
                assert outcome is not None
                assert outcome.is_over, (told["about"]["title"], outcome)
                check_history(await session.history())
        for told in old.sessions:
            session = await outlast.owned_by(told["owner"]).get(told["id"])
            before = len(await session.history())
            outcome = await session.ask("And now?", wait=30)
            assert (outcome.state, outcome.text[:10]) == ("completed", "Still here"), told["about"]["title"]
            assert len(await session.history()) > before
            check_history(await session.history())
            numbers = [each.number for each in await all_events(session) if each.number is not None]
            assert numbers == sorted(set(numbers))


async def test_it_opens_again_after_it_was_opened(old: Old) -> None:
    """P1: what the first opening did is kept, and the second finds nothing to do."""
    async with old.open() as outlast:
        first = {each.id: await summary_of(outlast, each) for each in await _found(outlast)}
    async with old.open() as outlast:
        for session in await _found(outlast):
            read = await summary_of(outlast, session)
            if not read["is_open"]:
                assert read["messages"] == first[session.id]["messages"]
            assert read["events"][: len(first[session.id]["events"])] == first[session.id]["events"]
