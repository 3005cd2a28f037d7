"""Work that recurs, on both stores: what was left half done is found by whoever is there."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from outlast import Outlast, ids
from outlast.duties import duty
from outlast.duties.deletions import Deletions
from outlast.duties.duty import Duty, DutyRunner
from outlast.duties.overdue_tasks import expire_overdue
from outlast.duties.unrun_turns import UnrunTurns
from outlast.engines.distributed import DistributedEngine
from outlast.errors import StoreUnavailable
from outlast.ids import SessionId, TaskId, TurnId, WorkerId
from outlast.store.database import Database
from outlast.store.files.file_store import FileStore
from outlast.store.repositories import deleted, tasks, turns
from outlast.store.repositories.stored_task import NewTask, Task
from outlast.store.repositories.turns import Origin, TurnState
from outlast.store.unit import Unit
from outlast.transitions import deletion, turn
from outlast.transitions.tasks import task_moves
from outlast.transitions.turns import turn_start
from outlast.wire.task_state import TaskState
from tests.support.stores.store import OWNER, new_session
from tests.support.turns.runtime import Runtime

ME = WorkerId("wrk_me")
OFTEN = timedelta(milliseconds=5)


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await holds():  # noqa: ASYNC110 - in the database
            await asyncio.sleep(0.01)


async def _claimed_turn(database: Database) -> TurnId:
    session_id = await new_session(database)

    def start(unit: Unit) -> TurnId:
        turn_id = turn_start.start(unit, unit.lock(session_id), Origin.USER)
        assert turn.claim(unit, turn_id, ME) is not None
        return turn_id

    return await database.transaction(start, name="start")


async def _is_queued(database: Database, turn_id: TurnId) -> bool:
    row = await database.read(lambda connection: turns.get(connection, turn_id))
    return row is not None and row.state is TurnState.QUEUED


async def test_a_turn_that_its_worker_does_not_run_is_given_back(database: Database) -> None:
    """P1: whatever became of its attempt, nobody hangs on it; found twice, and those that run are left alone."""
    running, unrun = await _claimed_turn(database), await _claimed_turn(database)
    found = UnrunTurns(database, me=lambda: ME, runs=[running].__contains__)
    await found.give_back()
    assert not await _is_queued(database, unrun), "its end may have been committed just now"
    await found.give_back()
    assert await _is_queued(database, unrun)
    assert not await _is_queued(database, running)


async def test_a_task_whose_deadline_comes_while_it_waits_for_a_worker_ends(database: Database) -> None:
    """B10, A5: nobody has its agent, so nobody's timers run; whoever waits for it is told."""
    session_id = await new_session(database)

    def leave(unit: Unit, seconds: float) -> TaskId:
        new = NewTask(
            ids.task_id(),
            title="fly",
            tool="fly",
            agent="nobody",
            spec={"args": {}},
            may_run_again=True,
            deadline_at=unit.now + timedelta(seconds=seconds),
        )
        task_moves.orphaned(unit, task_moves.make(unit, session_id, new, worker_id=WorkerId("wrk_dead")))
        return new.id

    async def found(task_id: TaskId) -> Task:
        task = await database.read(lambda connection: tasks.get(connection, task_id))
        assert task is not None
        return task

    soon = await database.transaction(lambda unit: leave(unit, 0.1), name="leave")
    later = await database.transaction(lambda unit: leave(unit, 3600), name="leave")

    async def is_expired() -> bool:
        await expire_overdue(database)
        return (await found(soon)).is_over

    await _until(is_expired)
    assert ((await found(soon)).error or {})["kind"] == "timeout"
    assert (await found(later)).state is TaskState.QUEUED


async def test_a_deletion_that_nobody_finished_is_finished(database: Database, tmp_path: Path) -> None:
    """D10: found at two looks, for whoever began it may be at it."""
    session_id = await new_session(database)
    await database.transaction(lambda unit: deletion.mark(unit, session_id, owner_id=OWNER), name="delete")
    deletions = Deletions(database, FileStore(str(tmp_path / "files")))

    async def marked() -> list[SessionId]:
        return list(await database.read(deleted.marked))

    await deletions.go_on()
    assert await marked() == [session_id]
    await deletions.go_on()
    await _until(lambda: _is_empty(marked))
    await deletions.close()


async def _is_empty(found: Callable[[], Awaitable[list[SessionId]]]) -> bool:
    return not await found()


async def test_a_duty_that_fails_is_done_again_and_harms_no_other() -> None:
    """P8: whatever it raises."""
    failures: list[Exception] = [ValueError("odd"), StoreUnavailable("away")]
    done, others = asyncio.Event(), asyncio.Event()

    async def fails() -> None:
        if failures:
            raise failures.pop()
        done.set()

    async def works() -> None:
        others.set()

    runner = DutyRunner([Duty("fails", fails, OFTEN), Duty("works", works, OFTEN)])
    runner.start()
    async with asyncio.timeout(60):
        await done.wait()
        await others.wait()
    await runner.close()


async def test_what_is_shared_is_left_to_the_one_that_leads() -> None:
    """DESIGN 1: in a cluster by one worker at a time; what concerns a worker alone is done by each."""
    own, shared = asyncio.Event(), asyncio.Event()

    async def alone() -> None:
        own.set()

    async def for_all() -> None:
        shared.set()

    leads = asyncio.Event()

    async def is_leader() -> bool:
        return leads.is_set()

    runner = DutyRunner([Duty("own", alone, OFTEN, is_shared=False), Duty("shared", for_all, OFTEN)], leads=is_leader)
    runner.start()
    async with asyncio.timeout(60):
        await own.wait()
        assert not shared.is_set()
        leads.set()
        await shared.wait()
    await runner.close()


async def test_of_two_workers_one_leads_and_the_other_after_it(
    ready_postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN 1: whose connection ends, leads no more."""
    monkeypatch.setattr(duty, "EVERY", timedelta(minutes=5))
    make = Runtime(ready_postgres_url, files=str(tmp_path / "files"))

    async def leads(outlast: Outlast[Any, Any]) -> bool:
        engine = _engine_of(outlast)
        return await engine._leads()  # pyright: ignore[reportPrivateUsage]

    async with make(lambda _: "One.") as one:
        async with make(lambda _: "Two.") as two:
            assert await leads(one)
            assert not await leads(two)
            assert await leads(one), "asked again, it is still the one"
        async with make(lambda _: "Three.") as three:
            await one.__aexit__(None, None, None)
            await _until(lambda: leads(three))


def _engine_of(outlast: Outlast[Any, Any]) -> DistributedEngine:
    outbox: Any = vars(outlast.database)["_outbox"]
    assert isinstance(outbox.engine, DistributedEngine)
    return outbox.engine


async def test_one_process_on_a_file_has_the_same_duties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D10, B10: what fails to be removed is removed later, without a restart."""
    monkeypatch.setattr(duty, "EVERY", timedelta(seconds=0.02))
    async with Runtime(tmp_path / "outlast.db")(lambda _: "Yes.") as outlast:
        session = await outlast.sessions.create()
        await session.ask("Hi")
        await outlast.database.transaction(
            lambda unit: deletion.mark(unit, session.id, owner_id=session.owner_id), name="delete"
        )

        async def is_removed() -> bool:
            return not await outlast.database.read(deleted.marked)

        await _until(is_removed)
