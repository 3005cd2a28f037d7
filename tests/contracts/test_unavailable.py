"""A database that cannot do its work for a while: said as such, nothing acknowledged, and then it goes on."""

import asyncio
import socket
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import exc as exc_types

from outlast.clock import SystemClock
from outlast.errors import OutlastError, StoreUnavailable
from outlast.store import urls
from outlast.store.database import Database, retry_while_unavailable
from outlast.store.postgres.database import PostgresDatabase
from outlast.store.postgres.opening import open_postgres
from outlast.store.sqlite import opening
from outlast.store.unit import Unit
from tests.support.stores.store import HeldWriter, append, new_session, note, opened, started, stored_notes


async def test_those_who_share_a_commit_fail_apart(sqlite_url: str) -> None:
    """P1: writers that waited together share one commit; one that raises takes nothing of the others with it."""
    async with opened(sqlite_url) as database:
        session_id = await new_session(database)
        commits: list[list[str]] = []
        database.watcher = lambda name, moment: commits.append([name, moment])

        def refuse(unit: Unit) -> None:
            unit.append(session_id, [note("refused")])
            unit.connection.execute(sa.text("UPDATE sessions SET title = 'refused'"))
            raise ValueError("changed its mind")

        async with HeldWriter(database) as let_go:
            running = await started(
                append(database, session_id, note("first")),
                database.transaction(refuse, name="refuse"),
                append(database, session_id, note("second")),
            )
            let_go()
            results = await asyncio.gather(*running, return_exceptions=True)
        assert (results[0], results[2]) == (1, 2)
        assert isinstance(results[1], ValueError)
        assert await stored_notes(database, session_id) == ["first", "second"]
        row = await database.read(lambda connection: connection.execute(sa.text("SELECT title FROM sessions")).one())
        assert row.title is None
        together = [["append", "before"], ["append", "before"], ["append", "after"], ["append", "after"]]
        assert commits[-4:] == together, "the two shared one commit"


async def test_a_shared_commit_that_fails_is_acknowledged_to_nobody(sqlite_url: str) -> None:
    """P1: none of those who shared it hears "done", and none of their rows stands."""
    async with opened(sqlite_url) as database:
        session_id = await new_session(database)

        def fail(name: str, moment: str) -> None:
            if name == "append" and moment == "before":
                raise exc_types.OperationalError("COMMIT", {}, Exception("disk I/O error"))

        database.watcher = fail
        async with HeldWriter(database) as let_go:
            running = await started(*(append(database, session_id, note(n)) for n in range(3)))
            let_go()
            results = await asyncio.gather(*running, return_exceptions=True)
        assert [type(each) for each in results] == [StoreUnavailable] * 3
        database.watcher = None
        assert await stored_notes(database, session_id) == []
        assert await append(database, session_id, note("after")) == 1


async def test_a_full_disk_is_an_unavailable_store(sqlite_url: str) -> None:
    """P1: SQLite's own "full" (its page limit here) becomes `store_unavailable`; with room it goes on."""
    async with opened(sqlite_url) as database:
        session_id = await new_session(database)

        def fill(unit: Unit) -> None:
            pages = unit.connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            unit.connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 2}")
            unit.append(session_id, [note("x" * 100_000)])

        async with HeldWriter(database) as let_go:
            running = await started(
                append(database, session_id, note("beside")), database.transaction(fill, name="fill")
            )
            let_go()
            beside, filling = await asyncio.gather(*running, return_exceptions=True)
        assert isinstance(filling, StoreUnavailable)
        expected = ["beside"] if beside == 1 else []
        assert beside == 1 or isinstance(beside, StoreUnavailable)
        assert await stored_notes(database, session_id) == expected
        await retry_while_unavailable(lambda: append(database, session_id, note("later")))
        assert await stored_notes(database, session_id) == [*expected, "later"]


async def test_a_wrong_statement_is_not_an_unavailable_store(database: Database) -> None:
    """A fault in the code is not something to wait for."""

    def wrong(unit: Unit) -> None:
        unit.connection.execute(sa.text("SELECT * FROM a_table_that_is_not_there"))

    with pytest.raises(exc_types.DBAPIError):
        await database.transaction(wrong, name="wrong")
    with pytest.raises(exc_types.DBAPIError):
        await database.read(
            lambda connection: connection.execute(sa.text("SELECT * FROM a_table_that_is_not_there")).all()
        )


@pytest.mark.parametrize("sqlstate", ["53100", "53300", "57P01", "57P03", "08006", "58030"])
async def test_trouble_of_the_server_is_an_unavailable_store(postgres_url: str, sqlstate: str) -> None:
    """P1: disk full, no connections left, shutting down, starting up, connection lost, I/O error."""
    async with opened(postgres_url) as database:
        session_id = await new_session(database)

        def fail(unit: Unit) -> None:
            unit.append(session_id, [note("lost")])
            unit.connection.execute(sa.text(f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{sqlstate}'; END $$"))

        with pytest.raises(StoreUnavailable):
            await database.transaction(fail, name="fail")
        assert await stored_notes(database, session_id) == []


async def test_a_connection_that_is_cut_is_an_unavailable_store(postgres_url: str) -> None:
    """P1: the server ends the connection in the middle; nothing stands, and the next transaction has another."""
    cut = sa.text("SELECT pg_terminate_backend(pg_backend_pid())")
    async with opened(postgres_url) as database:
        session_id = await new_session(database)

        def fail(unit: Unit) -> None:
            unit.append(session_id, [note("lost")])
            unit.connection.execute(cut)

        with pytest.raises(StoreUnavailable):
            await database.transaction(fail, name="fail")
        with pytest.raises(StoreUnavailable):
            await database.read(lambda connection: connection.execute(cut).all())
        assert await append(database, session_id, note("kept")) == 1
        assert await stored_notes(database, session_id) == ["kept"]


async def test_connections_that_were_cut_are_not_noticed_by_those_who_need_one(postgres_url: str) -> None:
    """P1: idle in the pool or in the middle of a transaction, what was cut once is done once, on another connection."""
    cut = sa.text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()")
    async with opened(postgres_url) as database:
        session_id = await new_session(database)
        tries: list[int] = []

        def cut_once(unit: Unit) -> int:
            tries.append(1)
            number = unit.append(session_id, [note("once")])
            if len(tries) == 1:
                unit.connection.execute(cut)
            return number

        def read_once(connection: sa.Connection) -> int:
            tries.append(1)
            return len(connection.execute(cut if len(tries) == 3 else sa.text("SELECT 1")).all())

        await asyncio.gather(*(database.read(lambda connection: None) for _ in range(5)))
        assert await database.transaction(cut_once, name="cut") == 1
        assert await database.read(read_once) == 1
        assert len(tries) == 4
        assert await asyncio.gather(*(stored_notes(database, session_id) for _ in range(5))) == [["once"]] * 5


async def test_a_server_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    """Whoever starts a process is told where it looked and why that failed, and never the password."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    places = {
        f"postgresql://postgres:hidden@/nothing?host={tmp_path}": f"{tmp_path}/.s.PGSQL.5432",
        f"postgresql://postgres:hidden@127.0.0.1:{port}/nothing": f"127.0.0.1:{port}",
        "postgresql://postgres:hidden@nowhere.invalid/nothing": "nowhere.invalid:5432",
    }
    for url, place in places.items():
        with pytest.raises(StoreUnavailable) as caught:
            await open_postgres(urls.parse(url))
        assert f"PostgreSQL at {place} cannot be used: [Errno" in caught.value.message
        assert "hidden" not in caught.value.message


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    """Neither a start nor a request waits a minute for a host that says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = urls.parse(f"postgresql://postgres@127.0.0.1:{silent.getsockname()[1]}/nothing")
        with pytest.raises(StoreUnavailable, match=r"no answer within 0\.1 seconds"):
            await open_postgres(url, wait=0.1)
        database = PostgresDatabase(url, wait=0.1)
        with pytest.raises(StoreUnavailable):
            await database.read(lambda connection: None)
        await database.close()


async def test_a_file_that_is_no_database_is_said_so(tmp_path: Path) -> None:
    """The message names the file: a typing error in a path must not end in a stack of another library."""
    path = tmp_path / "letter.txt"
    path.write_text("Dear Olga, this is a letter, and it is much longer than one hundred characters, so that " * 3)
    with pytest.raises(OutlastError, match=r"letter\.txt"):
        await opening.open_sqlite(path, clock=SystemClock(), durability="normal")


async def test_a_closed_store_says_so(sqlite_url: str) -> None:
    """Nobody waits for a store that this process has closed."""
    async with opened(sqlite_url) as database:
        session_id = await new_session(database)
    with pytest.raises(StoreUnavailable) as caught:
        await retry_while_unavailable(lambda: append(database, session_id, note("too late")))
    assert caught.value.details["is_closed"] is True
