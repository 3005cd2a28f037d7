"""Jobs that are gone although what they meant is not, and what PgQueuer keeps of those that are done."""

import structlog

from outlast.ids import TaskId, TurnId
from outlast.store.database import Database
from outlast.store.outbox import Work
from outlast.store.postgres import jobs
from outlast.store.repositories import tasks, turns, workers
from outlast.store.repositories.turns import TurnState
from outlast.store.unit import Unit
from outlast.transitions.tasks import task_moves
from outlast.wire.task_state import TaskState

log = structlog.get_logger("outlast.duties")


async def enqueue_again(database: Database) -> None:
    forgotten = await database.read(workers.forgotten)
    for turn_id in forgotten.turns:
        await database.transaction(lambda unit, id=turn_id: _enqueue_turn(unit, id), name="enqueue")
    for task_id in forgotten.tasks:
        await database.transaction(lambda unit, id=task_id: _enqueue_task(unit, id), name="enqueue")
    await database.transaction(jobs.prune, name="prune")


def _enqueue_turn(unit: Unit, turn_id: TurnId) -> None:
    row = turns.get(unit.connection, turn_id)
    if row is None or not unit.try_lock(row.session_id):
        return
    row = turns.get(unit.connection, turn_id)
    if row is not None and row.state is TurnState.QUEUED and row.is_admitted:
        log.warning("a turn had no job", turn_id=turn_id)
        unit.submit(Work(row.id, row.owner_id, row.agent, row.not_before))


def _enqueue_task(unit: Unit, task_id: TaskId) -> None:
    task = tasks.get(unit.connection, task_id)
    if task is None or not unit.try_lock(task.session_id):
        return
    task = tasks.get(unit.connection, task_id)
    if task is not None and task.state is TaskState.QUEUED and not task.waits_for_place:
        log.warning("a task had no job", task_id=task_id)
        unit.submit(task_moves.work_of(task, behind=tasks.waiting_count(unit.connection, task.owner_id)))
