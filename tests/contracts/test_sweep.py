"""What dead workers left, on PostgreSQL: given to the living, whoever else stands still."""

import asyncio
from collections.abc import Collection
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from outlast import ids
from outlast.engines import sweep as sweeping
from outlast.engines.sweep import Sweep
from outlast.errors import StoreUnavailable
from outlast.ids import TaskId, TurnId, WorkerId
from outlast.sessions import turn
from outlast.sessions.delete import Deletions
from outlast.sessions.inbox import Limits
from outlast.sessions.turn import TurnLimits
from outlast.store import tables, tasks, turns, workers
from outlast.store.database import Database
from outlast.store.files import FileStore
from outlast.store.tasks import NewTask, Task, TaskState
from outlast.store.turns import Origin, TurnState
from outlast.store.unit import Unit
from outlast.store.workers import Left
from outlast.tasks import service
from tests.support.store import new_session, opened

DEAD = WorkerId("wrk_dead")
ME = WorkerId("wrk_me")


async def left_turn(database: Database, worker_id: WorkerId = DEAD) -> TurnId:
    """A turn that a worker claimed which, unless it is another one, is not there."""
    session_id = await new_session(database)

    def start(unit: Unit) -> TurnId:
        turn_id = turn.start(unit, unit.lock(session_id), Origin.USER, limits=TurnLimits())
        assert turn.claim(unit, turn_id, worker_id) is not None
        return turn_id

    return await database.transaction(start, name="start")


def new_sweep(database: Database, folder: Path, *, runs: Collection[TurnId] = ()) -> Sweep:
    deletions = Deletions(database, FileStore(str(folder)))
    return Sweep(
        database,
        me=lambda: ME,
        runs=runs.__contains__,
        remind=lambda task_ids: None,
        limits=Limits(),
        deletions=deletions,
    )


async def is_given_back(database: Database, turn_id: TurnId) -> bool:
    row = await database.read(lambda connection: turns.get(connection, turn_id))
    return row is not None and row.state is TurnState.QUEUED


async def test_a_session_that_a_frozen_process_holds_does_not_hold_up_the_others(
    postgres_url: str, tmp_path: Path
) -> None:
    """P2: its turn is given back as soon as its session is free, the other ones at once."""
    async with opened(postgres_url) as database, asyncio.timeout(20):
        held, free = await left_turn(database), await left_turn(database)
        sweep = new_sweep(database, tmp_path)
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
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4: who was declared dead is not found again, so the next look goes on with what it left."""
    read, failures = workers.left, [StoreUnavailable("The database restarts.")]

    def left(connection: sa.Connection) -> Left:
        if failures:
            raise failures.pop()
        return read(connection)

    monkeypatch.setattr(sweeping, "_TIDY_SECONDS", float("inf"))
    monkeypatch.setattr(workers, "left", left)
    async with opened(postgres_url) as database, asyncio.timeout(20):
        turn_id = await left_turn(database)
        sweep = new_sweep(database, tmp_path)
        sweep.start()
        while not await is_given_back(database, turn_id):  # noqa: ASYNC110 - in the database
            await asyncio.sleep(0.01)
        await sweep.close()


async def test_a_turn_that_its_living_worker_does_not_run_is_given_back(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: whatever became of its attempt, nobody hangs on it; those that run are left alone."""
    monkeypatch.setattr(sweeping, "_TIDY_SECONDS", 0.0)
    async with opened(postgres_url) as database, asyncio.timeout(20):
        here = {"id": ME, "host": "here", "pid": 1, "agents": "[]", "started_at": 1, "seen_at": 1}
        await database.transaction(lambda unit: unit.connection.execute(sa.insert(tables.workers), here), name="enter")
        running, unrun = await left_turn(database, ME), await left_turn(database, ME)
        sweep = new_sweep(database, tmp_path, runs=[running])
        sweep.start()
        while not await is_given_back(database, unrun):  # noqa: ASYNC110 - in the database
            await asyncio.sleep(0.01)
        await sweep.close()
        assert not await is_given_back(database, running)


async def test_a_task_whose_deadline_comes_while_it_waits_for_a_worker_ends(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B10, A5: nobody has its agent, so nobody's timers run; whoever waits for it is told."""
    monkeypatch.setattr(sweeping, "_TIDY_SECONDS", 0.0)
    async with opened(postgres_url) as database, asyncio.timeout(20):
        session_id = await new_session(database)

        def leave(unit: Unit, seconds: float) -> TaskId:
            new = NewTask(
                ids.task_id(),
                title="fly",
                tool="fly",
                spec={"agent": "nobody", "args": {}},
                may_run_again=True,
                deadline_at=unit.now + timedelta(seconds=seconds),
            )
            service.orphaned(unit, service.make(unit, session_id, new, worker_id=DEAD), limits=Limits())
            return new.id

        soon = await database.transaction(lambda unit: leave(unit, 0.5), name="leave")
        later = await database.transaction(lambda unit: leave(unit, 3600), name="leave")
        sweep = new_sweep(database, tmp_path)
        sweep.start()

        async def found(task_id: TaskId) -> Task:
            task = await database.read(lambda connection: tasks.get(connection, task_id))
            assert task is not None
            return task

        while not (await found(soon)).is_over:  # noqa: ASYNC110 - in the database
            await asyncio.sleep(0.01)
        await sweep.close()
        assert ((await found(soon)).error or {})["kind"] == "timeout"
        assert (await found(later)).state is TaskState.QUEUED
