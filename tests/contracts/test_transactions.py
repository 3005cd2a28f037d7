"""What a transaction promises, the same on both databases: all or nothing, and no answer before it is decided."""

import asyncio

import anyio
import pytest
import sqlalchemy as sa
from sqlalchemy import exc as exc_types
from sqlalchemy.util import await_only

from outlast.errors import StoreUnavailable
from outlast.ids import TurnId
from outlast.store.database import Database, Moment
from outlast.store.outbox import Committed, Work
from outlast.store.repositories import turns
from outlast.store.unit import Unit
from tests.support.stores.store import Outbox, append, count_events, new_session, note, opened, started, stored_notes


class Refused(Exception):
    """Raised by a transaction function that changes its mind."""


async def test_a_transaction_commits_everything(database: Database) -> None:
    """P1: rows and events of one function are there together."""
    session_id = await new_session(database)

    def change(unit: Unit) -> str:
        unit.lock(session_id).set(title="River")
        unit.append(session_id, [note("one"), note("two")])
        return "answer"

    assert await database.transaction(change, name="change") == "answer"
    assert await stored_notes(database, session_id) == ["one", "two"]
    titles = await database.read(lambda connection: connection.execute(sa.text("SELECT title FROM sessions")).all())
    assert [row.title for row in titles] == ["River"]


async def test_a_function_that_raises_leaves_nothing(database: Database) -> None:
    """P1: its own error comes back, and neither row nor event stands."""
    session_id = await new_session(database)
    outbox = Outbox()
    database.attach(outbox)

    def change(unit: Unit) -> None:
        unit.connection.execute(sa.text("UPDATE sessions SET title = 'River'"))
        unit.append(session_id, [note("one")])
        unit.submit(Work(TurnId("trn_1"), "olga", "agent"))
        raise Refused

    with pytest.raises(Refused):
        await database.transaction(change, name="change")
    assert await count_events(database) == 0
    titles = await database.read(lambda connection: connection.execute(sa.text("SELECT title FROM sessions")).all())
    assert [row.title for row in titles] == [None]
    assert outbox.delivered == []


async def test_what_was_collected_is_handed_on_after_the_commit(database: Database) -> None:
    """Events, work and signals reach the outbox once, and only when readers can see the rows."""
    session_id = await new_session(database)
    outbox = Outbox()
    database.attach(outbox)
    work = Work(TurnId("trn_1"), "olga", "agent")

    def change(unit: Unit) -> None:
        unit.append(session_id, [note("one")])
        unit.submit(work)
        unit.signal("somewhere")

    await database.transaction(change, name="change")
    assert outbox.enqueued == [work]
    (committed,) = outbox.delivered
    assert [event.number for event in committed.events] == [1]
    assert (committed.work, committed.signals) == ([work], ["somewhere", "feed:olga"])


async def test_a_failing_outbox_does_not_undo_or_deny_the_commit(database: Database) -> None:
    """P8: whoever fails while being told harms neither the caller nor the log."""
    session_id = await new_session(database)

    class Broken(Outbox):
        def deliver(self, committed: Committed) -> None:
            raise RuntimeError("an observer failed")

    database.attach(Broken())
    assert await append(database, session_id, note("one")) == 1
    assert await append(database, session_id, note("two")) == 2
    assert await stored_notes(database, session_id) == ["one", "two"]


@pytest.mark.parametrize("error", [StopIteration(), RuntimeError("no"), KeyError("no")])
async def test_any_error_of_a_function_reaches_its_caller(database: Database, error: Exception) -> None:
    """Nobody waits for ever, whatever a function raises, and the store goes on."""

    def change(unit: Unit) -> None:
        raise error

    with pytest.raises((type(error), RuntimeError)):
        async with asyncio.timeout(60):
            await database.transaction(change, name="change")
    session_id = await new_session(database)
    assert await append(database, session_id, note("one")) == 1


async def test_a_commit_that_fails_is_not_acknowledged(database: Database) -> None:
    """P1: an error just before the commit means an error for the caller, nothing stored, nobody told."""
    session_id = await new_session(database)
    outbox = Outbox()
    database.attach(outbox)

    def fail(name: str, moment: Moment) -> None:
        if moment == "before":
            raise exc_types.OperationalError("COMMIT", {}, Exception("database or disk is full"))

    database.watcher = fail
    with pytest.raises(StoreUnavailable) as caught:
        await append(database, session_id, note("lost"))
    assert caught.value.code == "store_unavailable"
    assert isinstance(caught.value.__cause__, exc_types.OperationalError)
    database.watcher = None
    assert await append(database, session_id, note("kept")) == 1
    assert await stored_notes(database, session_id) == ["kept"]
    assert [event.number for committed in outbox.delivered for event in committed.events] == [1]


async def test_a_cancelled_caller_hears_of_it_after_the_commit_is_decided(database: Database) -> None:
    """P1: cancelling the caller cancels the waiting, never half of the work."""
    session_id = await new_session(database)
    seen: list[tuple[str, Moment]] = []
    database.watcher = lambda name, moment: seen.append((name, moment))
    (running,) = await started(append(database, session_id, note("one")))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen == [("append", "before"), ("append", "after")]
    assert await stored_notes(database, session_id) == ["one"]


async def test_a_caller_cancelled_twice_still_waits_for_the_decision(database: Database) -> None:
    session_id = await new_session(database)
    seen: list[Moment] = []
    database.watcher = lambda name, moment: seen.append(moment)
    (running,) = await started(append(database, session_id, note("one")))
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    assert seen == ["before", "after"]


async def test_the_watcher_hears_before_and_after_each_commit(database: Database) -> None:
    seen: list[tuple[str, Moment]] = []
    database.watcher = lambda name, moment: seen.append((name, moment))
    await new_session(database)
    assert seen == [("create", "before"), ("create", "after")]


async def test_reading_is_one_moment_of_the_log(database: Database) -> None:
    """P4: two statements of one read see the same state, also when something is committed in between."""
    session_id = await new_session(database)
    await append(database, session_id, note("one"))
    loop = asyncio.get_running_loop()
    count = sa.text("SELECT count(*) FROM events")

    async def write_between() -> None:
        await append(database, session_id, note("two"))

    def read(connection: sa.Connection) -> tuple[int, int]:
        before = connection.execute(count).scalar_one()
        if connection.dialect.name == "sqlite":
            asyncio.run_coroutine_threadsafe(write_between(), loop).result(10)
        else:
            await_only(write_between())
        return before, connection.execute(count).scalar_one()

    assert await database.read(read) == (1, 1)
    assert await count_events(database) == 2


async def test_a_reader_that_goes_away_costs_no_connection(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """E5: streams end in the middle of a read all the time; their connections are used again."""

    def slowly(connection: sa.Connection) -> int:
        return connection.execute(sa.text("SELECT pg_backend_pid() FROM pg_sleep(0.05)")).scalar_one()

    async with opened(postgres_url) as database:
        known = await database.read(slowly)
        for _ in range(3):
            with anyio.move_on_after(0.02) as scope:
                await database.read(slowly)
            assert scope.cancelled_caught
        assert await database.read(slowly) == known
    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []


async def test_a_schema_that_another_version_migrates_disturbs_nobody(postgres_url: str) -> None:
    """P1, deploys: what was prepared before a column became wider is prepared anew, in commits and in reads."""
    widened = sa.text("ALTER TABLE turns ALTER COLUMN requests TYPE bigint")
    narrowed = sa.text("ALTER TABLE turns ALTER COLUMN requests TYPE integer")
    async with opened(postgres_url) as database:

        def look(connection: sa.Connection) -> object:
            return turns.get(connection, TurnId("trn_1"))

        async with opened(postgres_url) as other:
            for migration in (widened, narrowed):
                await database.read(look)
                await other.transaction(lambda unit, it=migration: unit.connection.execute(it), name="migrate")
                assert await database.transaction(lambda unit: look(unit.connection), name="look") is None
            await other.transaction(lambda unit: unit.connection.execute(widened), name="migrate")
            assert await database.read(look) is None
