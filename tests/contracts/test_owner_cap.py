"""PostgreSQL: how many of an owner's turns may run is decided by one transaction after the other."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TypeVar

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from outlast.clock import SystemClock
from outlast.errors import TooManyRequests
from outlast.ids import SessionId, TurnId, WorkerId
from outlast.limits import Limits
from outlast.store.database import Database
from outlast.store.outbox import Committed, SilentOutbox, Work
from outlast.store.repositories import turns
from outlast.store.repositories.turns import Disposition, Origin, TurnState
from outlast.store.unit import Unit
from outlast.transitions import turn
from outlast.transitions.turn import Claim
from outlast.transitions.turns import inbox, turn_start
from tests.support.stores.store import OWNER, new_session, opened, under

T = TypeVar("T")
ONE = Limits(max_running_per_owner=1)
_WAITING = sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")


@pytest.fixture
async def database(postgres_url: str) -> AsyncIterator[Database]:
    async with opened(postgres_url) as database:
        yield database


@pytest.fixture
async def engine(postgres_url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(postgres_url)
    yield engine
    await engine.dispose()


async def work(connection: AsyncConnection, fn: Callable[[Unit], T]) -> T:
    """All of a transaction but its commit."""

    def run(connection: sa.Connection) -> T:
        unit = Unit(connection, SystemClock().now())
        result = fn(unit)
        unit.flush()
        return result

    return await connection.run_sync(run)


def starting(session_id: SessionId) -> Callable[[Unit], TurnId]:
    return lambda unit: turn_start.start(under(ONE, unit), unit.lock(session_id), Origin.USER)


def ending(claim: Claim) -> Callable[[Unit], Disposition]:
    return lambda unit: turn.end(under(ONE, unit), claim, TurnState.COMPLETED, {}, values={})


async def waits_for_a_lock(engine: AsyncEngine) -> None:
    async with asyncio.timeout(60):
        while True:
            async with engine.connect() as connection:
                if (await connection.execute(_WAITING)).scalar_one() == 1:
                    return


async def started(database: Database, session_id: SessionId) -> Claim:
    turn_id = await database.transaction(starting(session_id), name="start")
    claim = await database.transaction(lambda unit: turn.claim(unit, turn_id, WorkerId("wrk_1")), name="claim")
    assert claim is not None
    return claim


async def admitted(database: Database) -> tuple[int, int]:
    return await database.read(lambda connection: turns.open_of_owner(connection, OWNER))


async def test_two_sessions_that_start_at_once_share_the_owners_places(database: Database, engine: AsyncEngine) -> None:
    """D13, P8: neither sees the other's turn before its commit, so the second waits for it."""
    one, two = await new_session(database), await new_session(database)
    async with engine.connect() as first, engine.connect() as second:
        await work(first, starting(one))
        later = asyncio.create_task(work(second, starting(two)))
        await waits_for_a_lock(engine)
        await first.commit()
        await later
        await second.commit()
    assert await admitted(database) == (1, 1)


async def test_a_place_that_becomes_free_is_not_missed(database: Database, engine: AsyncEngine) -> None:
    """P3: a turn that starts while the last one ends gets its place from one of the two."""
    one, two = await new_session(database), await new_session(database)
    claim = await started(database, one)
    async with engine.connect() as first, engine.connect() as second:
        await work(first, ending(claim))
        later = asyncio.create_task(work(second, starting(two)))
        await waits_for_a_lock(engine)
        await first.commit()
        await later
        await second.commit()
    assert await admitted(database) == (1, 0)


async def test_a_waiting_turn_that_is_stopped_leaves_its_place_to_the_next(
    database: Database, engine: AsyncEngine
) -> None:
    """P3: the place goes to a turn that will use it, not to one that has just ended."""
    one, two, three = [await new_session(database) for _ in range(3)]
    claim = await started(database, one)
    for each in (two, three):
        await database.transaction(starting(each), name="start")
    async with engine.connect() as first, engine.connect() as second:
        await work(first, lambda unit: turn.request_stop(under(ONE, unit), two, owner_id=OWNER))
        later = asyncio.create_task(work(second, ending(claim)))
        await waits_for_a_row(engine)
        await first.commit()
        await later
        await second.commit()
    assert await admitted(database) == (1, 0)
    left = await database.read(lambda connection: turns.last_of(connection, three))
    assert left is not None
    assert left.is_admitted


async def test_messages_to_busy_sessions_are_counted_one_after_the_other(
    database: Database, engine: AsyncEngine
) -> None:
    """D5, P8: two sessions at once, and only one more message may come within this minute."""
    limits = Limits(max_busy_per_minute=1)
    one, two = await new_session(database), await new_session(database)
    for each in (one, two):
        await database.transaction(saying(each, limits), name="accept")
    async with engine.connect() as first, engine.connect() as second:
        await work(first, saying(one, limits))
        later = asyncio.create_task(work(second, saying(two, limits)))
        await waits_for_a_lock(engine)
        await first.commit()
        with pytest.raises(TooManyRequests):
            await later


def saying(session_id: SessionId, limits: Limits) -> Callable[[Unit], object]:
    return lambda unit: inbox.accept(under(limits, unit), session_id, "hello", owner_id=OWNER)


async def waits_for_a_row(engine: AsyncEngine) -> None:
    waiting = sa.text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    async with asyncio.timeout(60):
        while True:
            async with engine.connect() as connection:
                if (await connection.execute(waiting)).scalar_one() >= 1:
                    return


class Worker(SilentOutbox):
    """Runs what commits hand on, as fast as it comes: claims a turn, and ends it."""

    def __init__(self, database: Database, limits: Limits) -> None:
        self.ended: list[str] = []
        self.most = 0
        self._database = database
        self._limits = limits
        self._queue: asyncio.Queue[Work] = asyncio.Queue()
        database.attach(self)

    def deliver(self, committed: Committed) -> None:
        for each in committed.work:
            self._queue.put_nowait(each)

    async def run(self, count: int) -> None:
        while len(self.ended) < count:
            work = await self._queue.get()
            if work.id in self.ended:
                return
            claim = await self._database.transaction(partial(self._claim, TurnId(work.id)), name="claim")
            await self._database.transaction(partial(self._end, claim), name="end")
            self.ended.append(work.id)
            if len(self.ended) == count:
                for _ in range(count):
                    self._queue.put_nowait(work)

    def _claim(self, turn_id: TurnId, unit: Unit) -> Claim:
        claim = turn.claim(under(self._limits, unit), turn_id, WorkerId("wrk_1"))
        assert claim is not None
        self.most = max(self.most, turns.open_of_owner(unit.connection, OWNER)[0])
        return claim

    def _end(self, claim: Claim, unit: Unit) -> None:
        turn.end(under(self._limits, unit), claim, TurnState.COMPLETED, {}, values={})


async def test_many_turns_at_once_share_the_owners_places_and_all_run(database: Database) -> None:
    """D13, P3: starts and ends in any order; never more than may run, and none is left waiting."""
    limits = Limits(max_running_per_owner=3)
    made = [await new_session(database) for _ in range(24)]
    worker = Worker(database, limits)

    def start(session_id: SessionId, unit: Unit) -> TurnId:
        return turn_start.start(under(limits, unit), unit.lock(session_id), Origin.USER)

    running = [asyncio.create_task(worker.run(len(made))) for _ in range(4)]
    async with asyncio.timeout(60):
        await asyncio.gather(*(database.transaction(partial(start, each), name="start") for each in made))
        await asyncio.gather(*running)
    assert (len(set(worker.ended)), worker.most) == (24, 3)
    assert await admitted(database) == (0, 0)
