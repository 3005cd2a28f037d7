"""Leave behind what a process of commit b74d99d0d1cbf57cc8445a211976002c59578c70 leaves, on both stores.

Run once, at that commit: `python -m tests.data.old.make_database`, from the root of the repository. It writes into its
own folder the SQL of a SQLite file and of a PostgreSQL database, their files, and in `expected.json` what that commit
read from them. Later code opens them (`tests/contracts/test_old_databases.py`) and is never asked to make them again:
names inside the package that this script needs are looked up when it runs, and may be gone by now.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from pydantic_ai.messages import BinaryContent, ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart

from outlast import Attachment, Context, Outlast, Session, Settings, Task, Verdict
from tests.data.old import dump
from tests.data.old.actor import LARGE, ODD, PICTURE, Actor
from tests.support.logs.summary import all_sessions, feed_lines, feed_of, summary_of
from tests.support.stores.postgres import running_postgres
from tests.support.turns.background import task_that
from tests.support.turns.runtime import events_of, wait_for_event

HERE = Path(__file__).parent
KEY = "b2xkIGRhdGFiYXNlcyBhcmUgcmVhZCBmb3IgZXZlciE="
OWNERS = ("local", "bob")
KILLED = {
    "words of a killed process": "Speak slowly.",
    "a call of a killed process": "Charge: charge 1",
    "a call of a killed process, settled": "Charge: charge 2",
    "a call of a killed process, repeated": "Charge: upsert 3",
    "a task of a killed process": "Survey: survey Elbe",
    "a task of a killed process, settled": "Survey: survey Elbe",
    "a task of a killed process, repeated": "Survey: survey_again Elbe",
}


def opened(actor: Actor, database: str, files: str) -> Outlast[None, Any]:
    settings = Settings(
        files=files,
        coalesce=timedelta(milliseconds=2),
        model_backoff=timedelta(milliseconds=1),
        stop_grace=timedelta(milliseconds=40),
        abandon_after=timedelta(milliseconds=60),
        drain=timedelta(milliseconds=50),
        wake_company=timedelta(milliseconds=20),
        max_woken_turns=2,
        max_open_tasks_per_session=3,
        encryption_keys=(KEY,),  # pyright: ignore[reportArgumentType]
    )
    return Outlast(actor.agent(), database=database, models=actor.models(), settings=settings)


async def run_and_die(database: str, files: str) -> None:
    """The process that is killed while it does what `KILLED` says."""
    actor = Actor()
    async with opened(actor, database, files) as outlast:
        for title, text in KILLED.items():
            session = await outlast.sessions.create(title=title)
            await session.send(text)
            if "task" in title:
                await wait_for_event(session, "task.created")
                await wait_for_event(session, "turn.completed")
            else:
                await wait_for_event(session, "part.delta" if "words" in title else "call.progress")
        await actor.reached("words", "charge 1", "charge 2", "charge 3", "Elbe")
        await asyncio.sleep(0.5)  # what was printed is on its way
        os.kill(os.getpid(), signal.SIGKILL)


class Making:
    """The sessions of the process after it, each by a title that says what it is."""

    def __init__(self, outlast: Outlast[None, Any], actor: Actor) -> None:
        self.outlast = outlast
        self.actor = actor

    async def session(self, title: str, *said: str, **options: Any) -> Session:
        session = await self.outlast.sessions.create(title=title, **options)
        for each in said:
            await (await session.send(each)).outcome()
        return session

    async def parked(self, title: str, said: str, **options: Any) -> tuple[Session, Task]:
        session = await self.session(title, said, **options)
        return session, await task_that(session, lambda task: True)

    async def what_was_killed(self) -> None:
        self.actor.open("words", "charge 1", "charge 2", "charge 3", "Elbe")
        found = {each.title: each for each in await all_sessions(self.outlast, "local")}
        for session in found.values():
            await session.settled()
        call = found["a call of a killed process, settled"]
        await call.settle_call("c-2", Verdict.FAILED, by="olga", note="I looked.")
        task = found["a task of a killed process, settled"]
        (row,) = await task.tasks()
        await self.outlast.tasks.settle(row.id, "worked", by="olga", note=ODD)
        for session in (call, task):
            await session.settled()

    async def turns(self) -> None:
        hello = await self.session(
            "turns that completed",
            ODD,
            "Count.",
            metadata={"a": [1, None], "odd": ODD},
            external_id="hello-1",
            idempotency_key="make-1",
        )
        await hello.update(title="turns that completed, renamed", metadata={"b": True}, read_to=hello.last_event)
        await hello.update(model="cheap")
        await (await hello.send("Count.", idempotency_key="send-1")).outcome()
        await self.outlast.sessions.fork(hello.id, title="a fork", idempotency_key="fork-1")
        await self.outlast.sessions.fork(hello.id, at=2, title="an earlier fork")
        await self.outlast.sessions.import_(await hello.export(), idempotency_key="import-1")
        await self.session("one without a word")
        await (await self.session("archived", "Hello.")).update(is_archived=True)
        await self.session("a long answer", "Tell a long story.")
        await self.session("typed output", "Report.", "Hello.")
        await self.session("failed", "Fail.")
        once = await self.session("failed and retried", "Fail once.")
        await (await once.retry()).outcome()
        await self.session("an answer that began twice", "Stumble.")
        await self.session("arguments that were repaired", "Read badly.")
        await self.session("shortened history", "Read all.")
        again = await self.session("answered anew", "Hello.", "Count.")
        await (await again.regenerate(model="cheap")).outcome()
        trimmed = await self.session("the beginning is forgotten", "Hello.", "Count.", "Hello.")
        events = import_module("outlast.store.events")
        number = (await events_of(trimmed, "turn.completed"))[1].number
        await self.outlast.database.transaction(lambda unit: events.trim(unit, trimmed.id, before=number), name="trim")

    async def values(self) -> None:
        await self.session("a picture", "Show me.")
        await self.session("a large value", "Read what is large.")
        await self.session("files and words", "Keep it.")
        await self.session("secrets", "Log in.")
        await self.session("a call that failed", "Break it.")
        session = await self.session("a message with files")
        files = [Attachment("a.png", PICTURE, "image/png"), Attachment("large.txt", LARGE.encode(), "text/plain")]
        context = Context("the page", url="https://pages.example/1")
        await (await session.send("Look at this.", files=files, context=context)).outcome()
        brought = [
            ModelRequest(parts=[UserPromptPart(["Look.", LARGE, BinaryContent(PICTURE, media_type="image/png")])]),
            ModelResponse(parts=[TextPart("I do."), ToolCallPart("pay", {"a": 1}, tool_call_id="brought-1")]),
        ]
        await self.session("a history that was brought", "Hello.", history=brought)

    async def stops(self) -> None:
        _, resumed, anew = [
            await self._stopped(each) for each in ("stopped", "stopped and resumed", "stopped and answered anew")
        ]
        await resumed.resume()
        await anew.regenerate()
        self.actor.open("end")
        await anew.settled()
        stopped = await self.session("a call that was stopped")
        await stopped.send("Charge: charge 11")
        await self.actor.reached("charge 11")
        await stopped.stop()
        steered = await self.session("steered")
        first = await steered.send("Charge: charge 12")
        await self.actor.reached("charge 12")
        await steered.send("And this.", when_busy="steer")
        await steered.send("Later that.", when_busy="queue")
        self.actor.open("charge 12")
        await first.outcome(settle=True)
        cut_short = await self.session("interrupted by a message")
        await cut_short.send("Charge: charge 13")
        await self.actor.reached("charge 13")
        await (await cut_short.send("Rather this.", when_busy="interrupt")).outcome(settle=True)

    async def _stopped(self, title: str) -> Session:
        session = await self.session(title)
        await session.send("Speak until you are stopped.")
        await wait_for_event(session, "part.delta")
        await session.stop()
        return session

    async def tasks(self) -> None:
        sessions = [
            (await self.parked("a task that succeeded", "Survey: survey Rhein"))[0],
            (await self.parked("a task that failed", "Survey: survey Oder"))[0],
        ]
        self.actor.open("Rhein", "Oder")
        canceled, task = await self.parked("a task that was canceled", "Survey: survey Weser")
        await self.outlast.tasks.cancel(task.id)
        sessions += [canceled, (await self.parked("a task that took too long", "Survey: survey_briefly Ruhr"))[0]]
        group = await self.session("a group", "Survey: survey_group Main Mosel")
        waited = await self.session("a call for which no place was left")
        await waited.send("Survey: survey Isar Inn Lech Iller")
        await wait_for_event(waited, "call.waiting")
        self.actor.open("Main", "Mosel", "Isar", "Inn", "Lech", "Iller")
        sessions += [group, waited]
        for name in ("worked", "try_again"):
            said = f"Dig: {name}"
            session, task = await self.parked(f"abandoned: {name}", said)
            await self.outlast.tasks.cancel(task.id)
            await session.settled()
            self.actor.open(said)
            await task_that(session, lambda task: task.late_outcome is not None or task.is_over)
            await self.outlast.tasks.settle(task.id, name, by="olga")
            sessions.append(session)
        for each in sessions:
            await each.settled()
        asked = await self.session("a task whose end was asked for")
        sent = await asked.send("Check: Eider")
        await wait_for_event(asked, "task.created")
        self.actor.open("Eider")
        await sent.outcome(settle=True)
        flagged = await self.session("flagged", "Again and again.")
        await wait_for_event(flagged, "session.flagged")

    async def owners(self) -> dict[str, str]:
        """The keys by what they are for."""
        bob = await self.outlast.owned_by("bob").create(title="of another owner", model="cheap")
        await (await bob.send("Count.")).outcome()
        keys = self.outlast.keys
        admin, admin_text = await keys.make("local", "admin", role="admin")
        _, made_text = await keys.make("local", "made with it", made_with=admin.id)
        _, bob_text = await keys.make("bob", "reading", scope="read")
        _, short_text = await keys.make("bob", "short", expires_in=timedelta(seconds=1))
        gone, gone_text = await keys.make("bob", "revoked")
        await keys.find(bob_text)
        await keys.revoke(gone.id)
        return {
            "admin": admin_text,
            "made with": made_text,
            "read": bob_text,
            "expired": short_text,
            "revoked": gone_text,
        }

    async def what_stays_open(self) -> None:
        """Under a pause at the end, so that what waits is still there when the database is opened."""
        await self.parked("an open task", "Survey: survey Donau")
        await self.parked("an open task that may be repeated", "Survey: survey_again Havel")
        await self.session("half a group", "Survey: survey_group Saale Spree")
        held, _ = await self.parked("a wake that is held", "Survey: survey Werra")
        await held.stop()
        woken, _ = await self.parked("a wake that waits for the end of a pause", "Survey: survey Fulda")
        calling = await self.session("an open call")
        await calling.send("Charge: charge 21")
        speaking = await self.session("an open answer")
        await speaking.send("Speak for ever.")
        await wait_for_event(speaking, "part.delta")
        busy = await self.session("an open call with an inbox")
        await busy.send("Charge: upsert 22")
        await self.actor.reached("charge 21", "charge 22", "Saale", "Spree", "Donau", "Havel", "Werra", "Fulda")
        for text in ("First.", "Second.", "Third."):
            await busy.send(text, when_busy="queue" if text == "Second." else "steer", idempotency_key=text)
        _, second, third = await busy.inbox()
        await busy.edit_input(second.id, f"Second, edited: {ODD}")
        await busy.remove_input(third.id)
        again, task = await self.parked("a task that waits to be tried again", "Dig: later")
        await self.outlast.tasks.cancel(task.id)
        await again.settled()
        idle = await self.session("a turn that waits", "Hello.")
        await self.outlast.pause(by="olga")
        self.actor.open("Saale", "Werra", "Fulda")
        for session in (held, woken):
            await wait_for_event(session, "task.ended")
        await wait_for_event(woken, "turn.queued")
        await self.outlast.tasks.settle(task.id, "try_again", by="olga")
        await idle.send("Are you there?")

    async def deleted(self) -> list[str]:
        """One that is gone, and one whose process ended before it was."""
        gone, left = [await self.session(each, "Show me.") for each in ("deleted", "half deleted")]
        await self.outlast.sessions.delete(gone.id)
        delete: Any = import_module("outlast.sessions.delete")
        delete.Deletions.look = _look_away
        limits = import_module("outlast.sessions.turn").TurnLimits()

        def mark(unit: Any) -> None:
            delete.mark(unit, left.id, owner_id="local", limits=limits)

        await self.outlast.database.transaction(mark, name="delete")
        return [gone.id, left.id]


def _look_away(*_: Any) -> None:
    """In place of the sweep's look at what is half deleted, which would end it."""


async def make(store: str, database: str, files: str) -> dict[str, Any]:
    """Gives what is to be read from the dump."""
    actor = Actor()
    async with opened(actor, database, files) as outlast:
        try:
            return await _make(Making(outlast, actor), lambda: write(store, database, files))
        finally:
            actor.open("Donau", "Havel", "Spree", "charge 21", "charge 22", "ever", "Dig: later")


async def _make(making: Making, write_down: Callable[[], Awaitable[None]]) -> dict[str, Any]:
    outlast = making.outlast
    await making.what_was_killed()
    await making.turns()
    await making.values()
    await making.stops()
    await making.tasks()
    keys = await making.owners()
    gone = await making.deleted()
    await making.what_stays_open()
    await asyncio.sleep(1)
    found = [each for owner in OWNERS for each in await all_sessions(outlast, owner)]
    expected: dict[str, Any] = {
        "keys": keys,
        "deleted": gone,
        "sessions": [await summary_of(outlast, each) for each in found],
        "feeds": {owner: feed_lines(await feed_of(outlast, owner), found, gone) for owner in OWNERS},
    }
    deltas = [event for each in found for event in await events_of(each, "part.delta")]
    assert any("marks" in event.data for event in deltas), "no text was folded"
    await write_down()
    _check_is_everything(await outlast.database.read(_types))
    for each, told in zip(found, expected["sessions"], strict=True):
        assert told == await summary_of(outlast, each), f"{each.title} changed while it was written"
        copy = await outlast.sessions.import_(await each.export())
        told["imported"] = [part.part_kind for message in await copy.history() for part in message.parts]
    return expected


def _types(connection: Any) -> set[str]:
    return set(connection.exec_driver_sql("SELECT DISTINCT type FROM events").scalars())


def _check_is_everything(found: set[str]) -> None:
    types = import_module("outlast.events.types")
    missing = {each.value for each in types.EventType} - {each.value for each in types.CONTROL} - found
    assert not missing, f"no event of {missing}"


async def write(store: str, database: str, files: str) -> None:
    if store == "sqlite":
        sql = dump.sqlite_sql(Path(database))
    else:
        sql = await dump.postgres_sql(database, import_module("outlast.store.tables").metadata)
    dump.write_text(HERE / f"{store}.sql.gz", sql)
    dump.write_folder(HERE / f"{store}.files.tar.gz", Path(files))
    if store == "postgres":
        await _check_loads(database, sql)


async def _check_loads(database: str, sql: str) -> None:
    """The tables that the SQL makes are those that it was written from."""
    copy = sa.make_url(database).set(database="loaded").render_as_string(hide_password=False)
    await dump.run_sql(database, "CREATE DATABASE loaded")
    await dump.run_sql(copy, sql)
    assert await dump.postgres_schema(copy) == await dump.postgres_schema(database)
    await dump.run_sql(database, "DROP DATABASE loaded")


@contextmanager
def place(store: str, folder: str) -> Generator[str]:
    if store == "sqlite":
        yield f"{folder}/outlast.db"
        return
    with running_postgres() as server, server.new_database() as url:
        yield url


def main() -> None:
    expected: dict[str, Any] = {}
    for store in sys.argv[1:] or ("sqlite", "postgres"):
        with tempfile.TemporaryDirectory() as folder, place(store, folder) as database:
            files = f"{folder}/files"
            killed = subprocess.run([sys.executable, "-m", __spec__.name, "die", database, files], check=False)
            assert killed.returncode == -signal.SIGKILL
            expected[store] = asyncio.run(make(store, database, files))
    (HERE / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, separators=(",", ":")))


if __name__ == "__main__":
    if sys.argv[1:2] == ["die"]:
        asyncio.run(run_and_die(*sys.argv[2:]))
    else:
        main()
