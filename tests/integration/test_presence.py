"""The presence of a worker: it must not end before its worker does."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from asyncpg.exceptions import InternalClientError
from sqlalchemy.util import await_only

from outlast import ids
from outlast.engines import presence
from outlast.engines.presence import Presence
from outlast.errors import AttemptLost, StoreUnavailable
from outlast.ids import WorkerId
from outlast.store.postgres import database as postgres
from outlast.store.postgres.database import unavailable
from outlast.store.repositories import pauses, workers
from outlast.store.unit import Unit
from tests.support.stores.store import append, new_session, note, opened, stored_notes


class Failing:
    """A connection on which the first renewals fail as the driver fails when it is cut between two of its steps."""

    def __init__(self, connection: Any, failures: list[BaseException], renewed: threading.Event) -> None:
        self._connection = connection
        self._failures = failures
        self._renewed = renewed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def fetchval(self, query: str, *arguments: Any) -> Any:
        if query.startswith("UPDATE") and self._failures:
            raise self._failures.pop()
        found = await self._connection.fetchval(query, *arguments)
        if query.startswith("UPDATE"):
            self._renewed.set()
        return found


@pytest.mark.parametrize(
    "failure", [InternalClientError("cannot switch to state 12"), RuntimeError("something that nobody foresaw")]
)
async def test_a_worker_stays_present_whatever_becomes_of_its_connection(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    """P5: a worker whose presence ended while it lived would be taken for dead, and could claim nothing for ever."""
    plain, failures, renewed = presence.connect, [failure], threading.Event()
    lost: list[WorkerId] = []

    async def connect(*arguments: Any, **options: Any) -> Any:
        return Failing(await plain(*arguments, **options), failures, renewed)

    monkeypatch.setattr(presence, "connect", connect)
    monkeypatch.setattr(presence, "RENEW_SECONDS", 0.01)
    async with opened(postgres_url) as database:
        present = Presence(sa.make_url(postgres_url), ids.worker_id(), agents=["agent"], when_lost=lost.append)
        await present.start()
        try:
            assert await asyncio.to_thread(renewed.wait, 30)
            known = await database.read(lambda connection: connection.execute(sa.text("SELECT id FROM workers")).all())
        finally:
            await present.close()
    assert (failures, lost, [row.id for row in known]) == ([], [], [present.worker_id])


async def test_a_worker_that_leaves_does_not_come_back_under_another_name(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P5: it takes its own row away, and is still there for a moment; nobody took it for dead."""
    plain, renewed = presence.connect, threading.Event()
    lost: list[WorkerId] = []

    async def connect(*arguments: Any, **options: Any) -> Any:
        return Failing(await plain(*arguments, **options), [], renewed)

    monkeypatch.setattr(presence, "connect", connect)
    monkeypatch.setattr(presence, "RENEW_SECONDS", 0.01)
    async with opened(postgres_url) as database:
        present = Presence(sa.make_url(postgres_url), ids.worker_id(), agents=[], when_lost=lost.append)
        await present.start()
        try:
            present.leave()
            await database.transaction(lambda unit: workers.remove(unit, present.worker_id), name="leave")
            for _ in range(2):  # the first may have been asked before the row was gone
                renewed.clear()
                assert await asyncio.to_thread(renewed.wait, 30)
            assert (await database.read(workers.roll)).sightings == []
        finally:
            await present.close()
    assert lost == []


@pytest.mark.parametrize("may_claim", [workers.is_present, workers.may_begin])
async def test_a_worker_that_claims_is_renewed_and_not_removed_meanwhile(
    may_claim: Callable[[Unit, WorkerId], bool], postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P5: claims may be slow and many: they must not make their worker look silent, nor be made by a dead one."""
    plain, renewed = presence.connect, threading.Event()
    lost: list[WorkerId] = []

    async def connect(*arguments: Any, **options: Any) -> Any:
        return Failing(await plain(*arguments, **options), [], renewed)

    monkeypatch.setattr(presence, "connect", connect)
    monkeypatch.setattr(presence, "RENEW_SECONDS", 0.01)
    async with opened(postgres_url) as database:
        present = Presence(sa.make_url(postgres_url), ids.worker_id(), agents=["agent"], when_lost=lost.append)
        name = present.worker_id
        await present.start()
        try:

            async def remove_dead() -> bool:
                return await database.transaction(lambda unit: workers.remove(unit, name), name="remove_dead")

            def claim(unit: Unit) -> "asyncio.Task[bool]":
                assert may_claim(unit, name)
                for _ in range(2):  # the first may have been asked before
                    renewed.clear()
                    assert await_only(asyncio.to_thread(renewed.wait, 30))
                removing = asyncio.create_task(remove_dead())
                waiting = asyncio.wait({removing}, timeout=0.05)
                assert await_only(waiting) == (set(), {removing})
                return removing

            assert await (await database.transaction(claim, name="claim"))
            while not lost:  # noqa: ASYNC110 - told by another thread
                await asyncio.sleep(0.01)
        finally:
            await present.close()


async def test_nothing_is_begun_by_a_worker_that_was_buried_or_in_a_pause(postgres_url: str) -> None:
    """P5: a turn that is claimed as it is made is claimed by the living."""
    async with opened(postgres_url) as database:
        present = Presence(sa.make_url(postgres_url), ids.worker_id(), agents=["agent"], when_lost=lambda new: None)
        await present.start()

        async def may_begin(name: WorkerId) -> bool:
            return await database.transaction(lambda unit: workers.may_begin(unit, name), name="may begin")

        try:
            assert await may_begin(present.worker_id)
            assert not await may_begin(ids.worker_id())
            await database.transaction(lambda unit: pauses.begin(unit, "ada"), name="pause")
            assert not await may_begin(present.worker_id)
        finally:
            await present.close()


def test_what_the_driver_says_of_a_cut_connection_is_an_unavailable_store() -> None:
    """P1: nothing is wrong with what was asked, and another connection may do it."""
    assert isinstance(unavailable(InternalClientError("another operation (2) is in progress")), StoreUnavailable)


async def test_a_worker_asks_before_it_says_that_it_was_not_taken_for_dead(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P5: soon after a renewal it knows; later it asks; and once somebody removed its row, it must not go on."""
    monkeypatch.setattr(presence, "RENEW_SECONDS", 600)
    lost: list[WorkerId] = []
    async with opened(postgres_url) as database:
        present = Presence(sa.make_url(postgres_url), ids.worker_id(), agents=["agent"], when_lost=lost.append)
        await present.start()
        name = present.worker_id
        try:
            await present.confirm(name)
            moment = presence.monotonic()
            monkeypatch.setattr(presence, "monotonic", lambda: moment + presence.SURE_SECONDS)
            await present.confirm(name)
            await database.transaction(
                lambda unit: unit.connection.execute(sa.text("DELETE FROM workers")), name="remove_dead"
            )
            await present.confirm(name)  # asked a moment ago
            monkeypatch.setattr(presence, "monotonic", lambda: moment + 2 * presence.SURE_SECONDS)
            with pytest.raises(AttemptLost, match="taken for dead"):
                await present.confirm(name)
            await present.confirm(present.worker_id)
        finally:
            await present.close()
    assert lost == [present.worker_id] != [name]


async def test_who_freezes_in_a_transaction_holds_nobody_up(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """P5: the server ends a transaction that says nothing any more; it is done again, once, after the others."""
    monkeypatch.setattr(postgres, "IDLE_SECONDS", 0.3)
    async with opened(postgres_url) as frozen, opened(postgres_url) as other:
        session_id = await new_session(other)
        locked, thawed, tries = asyncio.Event(), asyncio.Event(), 0

        def freeze(unit: Unit) -> None:
            nonlocal tries
            tries += 1
            unit.lock(session_id)
            if tries == 1:
                locked.set()
                await_only(thawed.wait())
            unit.append(session_id, [note("late")])

        freezing = asyncio.create_task(frozen.transaction(freeze, name="freeze"))
        await locked.wait()
        await append(other, session_id, note("in time"))
        thawed.set()
        await freezing
        assert tries == 2
        assert await stored_notes(other, session_id) == ["in time", "late"]


async def test_who_stalls_again_and_again_is_not_told_that_the_database_is_away(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: a careless tool blocks the loop, and the server ends what was in the middle; nothing is wrong with it."""
    monkeypatch.setattr(postgres, "IDLE_SECONDS", 0.1)
    async with opened(postgres_url) as database:
        session_id = await new_session(database)
        tries = 0

        def stall(unit: Unit) -> None:
            nonlocal tries
            tries += 1
            unit.lock(session_id)
            if tries <= 5:
                time.sleep(0.3)
            unit.append(session_id, [note("done")])

        await database.transaction(stall, name="stall")
        assert tries == 6
        assert await stored_notes(database, session_id) == ["done"]
