"""Those who want the same at once share a transaction; nobody loses or waits because of another."""

import asyncio
from collections.abc import Sequence

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from outlast.errors import NotFound, OutlastError, StoreUnavailable
from outlast.ids import SessionId
from outlast.store import group_commit
from outlast.store.database import Database
from outlast.store.group_commit import GroupCommit, LeftOut
from outlast.store.unit import Unit
from tests.support.moments.commits import HeldCommits, let_run
from tests.support.stores.store import new_session, note, opened, stored_events

NAME = "note"


class Notes:
    """Appends a note to each session; remembers who came group_commit."""

    def __init__(self, database: Database, *, fails: str = "") -> None:
        self.groups: list[int] = []
        self._fails = fails
        self._together: GroupCommit[tuple[SessionId, str], int] = GroupCommit(database, self._write, name=NAME)

    async def add(self, session_id: SessionId, text: str) -> int:
        return await self._together.ask((session_id, text))

    def _write(
        self, unit: Unit, items: Sequence[tuple[SessionId, str]], /, *, is_alone: bool
    ) -> Sequence[int | OutlastError | LeftOut]:
        self.groups.append(len(items))
        unit.lock_some([session_id for session_id, _ in items], is_alone=is_alone)
        return [self._write_one(unit, *each, is_alone=is_alone) for each in items]

    def _write_one(
        self, unit: Unit, session_id: SessionId, text: str, *, is_alone: bool
    ) -> int | OutlastError | LeftOut:
        if text and text == self._fails:
            raise ValueError(f"nobody may note {text}")
        if unit.has_locked(session_id):
            return unit.append(session_id, [note(text)])
        return NotFound("There is no such session.") if is_alone else LeftOut.HELD


async def texts(database: Database, session_id: SessionId) -> list[str]:
    return [each.data["reason"] for each in await stored_events(database, session_id)]


async def test_who_comes_while_a_transaction_is_under_way_shares_the_next(database: Database) -> None:
    """Each gets its own answer, in the order in which they came."""
    notes, session_id = Notes(database), await new_session(database)
    commits = HeldCommits(database)
    commits.hold(NAME)
    first = asyncio.create_task(notes.add(session_id, "0"))
    await commits.reached(NAME)
    others = [asyncio.create_task(notes.add(session_id, str(at))) for at in range(1, 20)]
    await let_run()
    commits.release(NAME)
    assert await asyncio.gather(first, *others) == list(range(1, 21))
    assert notes.groups == [1, 19]
    assert await texts(database, session_id) == [str(at) for at in range(20)]


async def test_one_that_fails_takes_nothing_of_the_others_with_it(database: Database) -> None:
    notes, session_id = Notes(database, fails="two"), await new_session(database)
    asked = (notes.add(session_id, each) for each in ("one", "two", "three"))
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in answers] == [int, ValueError, int]
    assert sorted(await texts(database, session_id)) == ["one", "three"]


async def test_one_that_asks_for_what_is_not_there_is_told_so_and_the_others_served(database: Database) -> None:
    """P7."""
    notes, session_id = Notes(database), await new_session(database)
    unknown = SessionId("ses_unknown")
    asked = (notes.add(each, "here") for each in (session_id, unknown, session_id))
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in answers] == [int, NotFound, int]
    assert await texts(database, session_id) == ["here", "here"]


async def test_a_store_that_is_gone_is_told_to_all(database_url: str) -> None:
    """Nobody hears "done" of what was not committed."""
    async with opened(database_url) as database:
        session_id = await new_session(database)
        notes = Notes(database)

        def fail(name: str, moment: str) -> None:
            if name == NAME and moment == "before":
                raise StoreUnavailable("The disk is full.")

        database.watcher = fail
        asked = (notes.add(session_id, str(at)) for at in range(3))
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(each) for each in answers] == [StoreUnavailable] * 3
        database.watcher = None
        assert await texts(database, session_id) == []
        assert await notes.add(session_id, "again") == 1


async def test_who_is_cancelled_leaves_when_it_is_decided(database: Database) -> None:
    """P1: as with a transaction of its own."""
    notes, session_id = Notes(database), await new_session(database)
    commits = HeldCommits(database)
    commits.hold(NAME)
    asked = asyncio.create_task(notes.add(session_id, "kept"))
    await commits.reached(NAME)
    asked.cancel()
    await let_run()
    assert not asked.done()
    commits.release(NAME)
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert await texts(database, session_id) == ["kept"]


async def test_a_session_that_somebody_holds_holds_up_nobody_else(
    ready_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN 8: a frozen process may hold it; whoever waits for it is served when it is free, alone."""
    monkeypatch.setattr(group_commit, "_PAUSE_SECONDS", 0.0)
    engine = create_async_engine(ready_postgres_url)
    async with opened(ready_postgres_url) as database, asyncio.timeout(60):
        notes = Notes(database)
        held, free = await new_session(database), await new_session(database)
        async with engine.connect() as frozen:
            await frozen.execute(sa.text("SELECT 1 FROM sessions WHERE id = :id FOR UPDATE"), {"id": held})
            waiting = asyncio.create_task(notes.add(held, "late"))
            await let_run()  # it is the only one of its group, and even so nobody waits for what it needs
            others = [asyncio.create_task(notes.add(each, "soon")) for each in (held, free, free)]
            assert await asyncio.gather(*others[1:]) == [1, 2]
            assert await notes.add(free, "and on") == 3
            assert not waiting.done()
            assert not others[0].done()
            await frozen.rollback()
        assert sorted(await asyncio.gather(waiting, others[0])) == [1, 2]
        assert sorted(await texts(database, held)) == ["late", "soon"]
    await engine.dispose()


async def test_who_asks_when_the_event_loop_ends_is_let_go(database: Database) -> None:
    """As with a transaction: a second Ctrl-C cancels everything, and nothing may hang."""
    notes, session_id = Notes(database), await new_session(database)
    commits = HeldCommits(database)
    commits.hold(NAME)
    before = asyncio.all_tasks()
    asked = [asyncio.create_task(notes.add(session_id, str(at))) for at in range(2)]
    await commits.reached(NAME)
    asked.append(asyncio.create_task(notes.add(session_id, "waits for the next group")))
    await let_run()
    for each in asyncio.all_tasks() - before:
        each.cancel()
    await let_run()
    commits.release(NAME)
    async with asyncio.timeout(60):
        await asyncio.wait(asked)
    assert all(each.cancelled() for each in asked)
    assert await texts(database, session_id) in (["0", "1"], [])
    assert await notes.add(session_id, "goes on") == len(await texts(database, session_id))
