"""`max_claims`: what ends its workers is run so often and no more, in whatever order they die, freeze and leave."""

from random import Random
from typing import Any

import pytest
import sqlalchemy as sa

from outlast import ids
from outlast.ids import TaskId, TurnId, WorkerId
from outlast.limits import Limits
from outlast.store.database import Database
from outlast.store.repositories import tasks, turns
from outlast.store.repositories.stored_task import NewTask, Task
from outlast.store.repositories.turns import Origin, TurnState
from outlast.store.unit import Unit
from outlast.transitions import turn
from outlast.transitions.tasks import many_tasks, task_moves
from outlast.transitions.turns import turn_start
from outlast.wire.task_state import TaskState
from tests.support.stores.store import new_session, under

MOST = 2
LIMITS = Limits(max_claims=MOST)
WORKERS = [WorkerId(f"wrk_{number}") for number in range(3)]


def _claim(unit: Unit, turn_id: TurnId, worker_id: WorkerId) -> None:
    turn.claim(unit, turn_id, worker_id)


def _row(connection: sa.Connection, turn_id: TurnId) -> turns.TurnRow:
    row = turns.get(connection, turn_id)
    assert row is not None
    return row


def _crash(unit: Unit, turn_id: TurnId, limits: Limits) -> None:
    row = _row(unit.connection, turn_id)
    if row.state is TurnState.RUNNING:
        turn.requeue(under(limits, unit), row, has_crashed=True)


def _task(connection: sa.Connection, task_id: TaskId) -> Task:
    task = tasks.get(connection, task_id)
    assert task is not None
    return task


@pytest.mark.parametrize("seed", range(6))
async def test_a_turn_is_claimed_so_often_and_once_more_to_bring_it_to_its_end(database: Database, seed: int) -> None:
    """P4: deaths, takeovers of a frozen worker and hand-overs mixed: only deaths count, and they always do."""
    random = Random(seed)
    session_id = await new_session(database)
    turn_id = await database.transaction(
        lambda unit: turn_start.start(under(LIMITS, unit), unit.lock(session_id), Origin.USER), name="start"
    )
    deaths = 0
    for _ in range(400):
        row = await database.read(lambda connection: _row(connection, turn_id))
        if row.is_over:
            break
        fence = turn.Fence(session_id, turn_id, row.attempt)
        stale = turn.Fence(session_id, turn_id, row.attempt - 1)
        what = random.choice(["claim", "die", "hand over", "wake from a freeze"])
        if what == "claim":
            await database.transaction(lambda unit: _claim(unit, turn_id, random.choice(WORKERS)), name="claim")
        elif what == "die":
            deaths += row.state is TurnState.RUNNING
            await database.transaction(lambda unit: _crash(unit, turn_id, LIMITS), name="die")
        else:
            chosen = fence if what == "hand over" else stale
            await database.transaction(
                lambda unit, chosen=chosen: turn.give_back(under(LIMITS, unit), chosen, has_crashed=False),
                name="leave",
            )
    row = await database.read(lambda connection: _row(connection, turn_id))
    assert (row.crashes, row.state) == (deaths, TurnState.FAILED) == (MOST + 1, TurnState.FAILED)
    assert (row.error or {})["kind"] == "crash_loop"


@pytest.mark.parametrize("seed", range(6))
async def test_a_task_is_claimed_so_often_and_no_more(database: Database, seed: int) -> None:
    """B10: an attempt that was claimed and not begun is given back, and only then does not count."""
    random = Random(seed)
    session_id = await new_session(database)
    new = NewTask(ids.task_id(), title="t", tool="t", agent="agent", spec={"args": {}}, may_run_again=True)
    await database.transaction(lambda unit: task_moves.make(unit, session_id, new, worker_id=WORKERS[0]), name="make")
    begun = 1

    def claim(unit: Unit) -> Any:
        return many_tasks.claim(
            unit, [new.id], random.choice(WORKERS), permit=lambda unit, worker_id: True, is_alone=True
        )

    def die(unit: Unit) -> None:
        task = _task(unit.connection, new.id)
        if task.state is TaskState.RUNNING:
            task_moves.orphaned(under(LIMITS, unit), task)

    for _ in range(400):
        task = await database.read(lambda connection: _task(connection, new.id))
        if task.is_over:
            break
        if task.state is TaskState.RUNNING:
            await database.transaction(die, name="die")
        elif (await database.transaction(claim, name="claim"))[0] is not None:
            task = await database.read(lambda connection: _task(connection, new.id))
            if random.random() < 0.5:
                await database.transaction(
                    lambda unit, task=task: task_moves.give_back(under(LIMITS, unit), task), name="leave"
                )
            else:
                begun += 1
    task = await database.read(lambda connection: _task(connection, new.id))
    assert (begun, task.attempt, (task.error or {})["kind"]) == (MOST, MOST, "crash_loop")
