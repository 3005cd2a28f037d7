"""What dead workers left, on PostgreSQL: given to the living, whoever else stands still."""

import asyncio

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from outlast.engines import sweep as sweeping
from outlast.engines.sweep import Sweep
from outlast.errors import StoreUnavailable
from outlast.ids import TurnId, WorkerId
from outlast.store.database import Database
from outlast.store.repositories import turns, workers
from outlast.store.repositories.turns import Origin, TurnState
from outlast.store.repositories.workers import Left
from outlast.store.unit import Unit
from outlast.transitions import turn
from outlast.transitions.turns import turn_start
from tests.support.stores.store import new_session, opened

DEAD = WorkerId("wrk_dead")
ME = WorkerId("wrk_me")


async def left_turn(database: Database, worker_id: WorkerId = DEAD) -> TurnId:
    """A turn that a worker claimed which, unless it is another one, is not there."""
    session_id = await new_session(database)

    def start(unit: Unit) -> TurnId:
        turn_id = turn_start.start(unit, unit.lock(session_id), Origin.USER)
        assert turn.claim(unit, turn_id, worker_id) is not None
        return turn_id

    return await database.transaction(start, name="start")


def new_sweep(database: Database) -> Sweep:
    return Sweep(database, me=lambda: ME)


async def is_given_back(database: Database, turn_id: TurnId) -> bool:
    row = await database.read(lambda connection: turns.get(connection, turn_id))
    return row is not None and row.state is TurnState.QUEUED


async def test_a_session_that_a_frozen_process_holds_does_not_hold_up_the_others(
    postgres_url: str,
) -> None:
    """P2: its turn is given back as soon as its session is free, the other ones at once."""
    async with opened(postgres_url) as database, asyncio.timeout(60):
        held, free = await left_turn(database), await left_turn(database)
        sweep = new_sweep(database)
        engine = create_async_engine(postgres_url)
        async with engine.connect() as frozen:
            row = "SELECT 1 FROM sessions WHERE id = (SELECT session_id FROM turns WHERE id = :id) FOR UPDATE"
            await frozen.execute(sa.text(row), {"id": held})
            sweep.start()
            while not await is_given_back(database, free):  # noqa: ASYNC110 - in the database
                await asyncio.sleep(0.01)
            assert not await is_given_back(database, held)
            await frozen.rollback()
        while not await is_given_back(database, held):  # noqa: ASYNC110 - in the database
            await asyncio.sleep(0.01)
        await sweep.close()
        await engine.dispose()


async def test_a_database_that_goes_meanwhile_does_not_put_off_what_the_dead_left(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4: who was declared dead is not found again, so the next look goes on with what it left."""
    read, failures = workers.left, [StoreUnavailable("The database restarts.")]

    def left(connection: sa.Connection) -> Left:
        if failures:
            raise failures.pop()
        return read(connection)

    monkeypatch.setattr(sweeping, "_TIDY_SECONDS", float("inf"))
    monkeypatch.setattr(workers, "left", left)
    async with opened(postgres_url) as database, asyncio.timeout(60):
        turn_id = await left_turn(database)
        sweep = new_sweep(database)
        sweep.start()
        while not await is_given_back(database, turn_id):  # noqa: ASYNC110 - in the database
            await asyncio.sleep(0.01)
        await sweep.close()
