"""Tasks that wait for a person's answer: open, run by nobody, and ended by a cancel or their deadline."""

from datetime import timedelta
from typing import Any

import pytest

from outlast import ids
from outlast.duties.overdue_tasks import expire_overdue
from outlast.errors import OutlastError
from outlast.ids import SessionId, TaskId, WorkerId
from outlast.runs.kinds.registry import STARTS
from outlast.store.database import Database
from outlast.store.group_commit import LeftOut
from outlast.store.repositories import events, tasks, workers
from outlast.store.repositories.stored_task import MOVES, NewTask, Task
from outlast.store.unit import Unit
from outlast.transitions import task_errors
from outlast.transitions.kinds import registry
from outlast.transitions.kinds.kind import Kind
from outlast.transitions.tasks import many_tasks, task_moves
from outlast.transitions.tasks.many_tasks import Wanted
from outlast.wire.task_state import TaskState
from tests.support.stores.store import OWNER, new_session

DEAD = WorkerId("wrk_dead")


def _request(unit: Unit) -> dict[str, Any]:
    return {"id": "req_1", "kind": "approval", "prompt": "May I fly?", "asked_at": unit.now.isoformat()}


def _accept(unit: Unit, session_id: SessionId, *new: NewTask, is_alone: bool = True) -> list[Task | LeftOut]:
    answers = many_tasks.accept(unit, [Wanted(session_id, each) for each in new], is_alone=is_alone)
    made: list[Task | LeftOut] = []
    for each in answers:
        assert not isinstance(each, OutlastError)
        made.append(each)
    return made


async def _asking(database: Database, session_id: SessionId, *, seconds: float = 3600) -> Task:
    def ask(unit: Unit) -> Task:
        deadline = unit.now + timedelta(seconds=seconds)
        new = NewTask(ids.task_id(), "fly", agent="pilot", tool="fly", request=_request(unit), deadline_at=deadline)
        (task,) = _accept(unit, session_id, new)
        assert isinstance(task, Task)
        assert not unit.committed.work, "nobody is to start it"
        return task

    return await database.transaction(ask, name="ask")


async def _found(database: Database, task_id: TaskId) -> Task:
    task = await database.read(lambda connection: tasks.get(connection, task_id))
    assert task is not None
    return task


async def _told(database: Database, task: Task) -> list[dict[str, Any]]:
    found = await database.read(lambda connection: events.page(connection, task.session_id, 0))
    return [each.data["task"] for each in found if each.task_id == task.id and "task" in each.data]


async def test_a_task_that_asks_is_open_and_nobody_runs_it(database: Database) -> None:
    """P4, P5: it counts as open, waits for no worker, and whoever looks for what the dead left does not find it."""
    session_id = await new_session(database)
    task = await _asking(database, session_id)
    found = await _found(database, task.id)
    assert (found.state, found.worker_id, found.attempt) == (TaskState.AWAITING_INPUT, None, 0)
    assert found.request is not None
    assert found.request["prompt"] == "May I fly?"
    assert await database.read(lambda connection: tasks.open_count(connection, session_id)) == 1
    assert not await database.read(tasks.queued)
    assert not await database.read(lambda connection: tasks.running_without(connection, DEAD))
    (told,) = await _told(database, task)
    assert (told["state"], told["agent"], told["request"]["kind"]) == ("awaiting_input", "pilot", "approval")


async def test_what_the_dead_left_has_no_task_that_asks(database: Database) -> None:
    """P5: it has no worker that could be dead."""
    await _asking(database, await new_session(database))
    assert not (await database.read(workers.left)).tasks


async def test_a_task_that_asks_is_cancelled_at_once(database: Database) -> None:
    """P6: nothing runs that would have to confirm it."""
    task = await _asking(database, await new_session(database))
    ended = await database.transaction(
        lambda unit: task_moves.request_cancel(unit, task.id, owner_id=OWNER), name="cancel"
    )
    assert ended.state is TaskState.CANCELED
    assert [each["state"] for each in await _told(database, task)] == ["awaiting_input", "canceled"]


async def test_a_task_that_nobody_answers_ends_at_its_deadline(database: Database) -> None:
    """P4, B10: and one whose deadline has not come goes on waiting."""
    session_id = await new_session(database)
    soon, later = await _asking(database, session_id, seconds=0), await _asking(database, session_id)
    await expire_overdue(database)
    ended = await _found(database, soon.id)
    assert ended.state is TaskState.FAILED
    assert ended.error == task_errors.NOT_ANSWERED
    assert (await _found(database, later.id)).state is TaskState.AWAITING_INPUT


async def test_a_key_stands_for_one_task_of_its_session(database: Database) -> None:
    """P2: also when it is asked for twice in one commit, and after the task has ended."""
    session_id, other = await new_session(database), await new_session(database)

    def new() -> NewTask:
        return NewTask(ids.task_id(), "fly", agent="pilot", key="call_1")

    def twice(unit: Unit) -> list[Task | LeftOut]:
        return _accept(unit, session_id, new(), new(), is_alone=False)

    first, second = await database.transaction(twice, name="accept")
    assert isinstance(first, Task)
    assert second is LeftOut.ALONE
    await database.transaction(lambda unit: task_moves.request_cancel(unit, first.id, owner_id=OWNER), name="cancel")
    (again,) = await database.transaction(lambda unit: _accept(unit, session_id, new()), name="accept")
    assert isinstance(again, Task)
    assert (again.id, again.state) == (first.id, TaskState.CANCELED)
    (elsewhere,) = await database.transaction(lambda unit: _accept(unit, other, new()), name="accept")
    assert isinstance(elsewhere, Task)
    assert elsewhere.id != first.id


@pytest.mark.parametrize(("most", "state"), [(1, TaskState.FAILED), (None, TaskState.QUEUED)])
async def test_a_task_says_how_often_it_may_be_tried(database: Database, most: int | None, state: TaskState) -> None:
    """B10: its own number counts before the worker's."""
    session_id = await new_session(database)

    def die(unit: Unit) -> TaskId:
        new = NewTask(ids.task_id(), "fly", agent="pilot", may_run_again=True, max_attempts=most)
        task = task_moves.make(unit, session_id, new, worker_id=DEAD)
        task_moves.orphaned(unit, task)
        return task.id

    task = await _found(database, await database.transaction(die, name="die"))
    assert task.state is state
    assert task.error == (task_errors.CRASH_LOOP if most else None)


async def test_a_kind_that_needs_no_worker_runs_without_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN 7: no takeover touches it, nobody starts it; a cancel or its deadline ends it here."""
    elsewhere = Kind("elsewhere", verdict=lambda task, now, limits: None, needs_worker=False)
    monkeypatch.setattr(registry, "KINDS", {**registry.KINDS, "elsewhere": elsewhere})
    session_id = await new_session(database)

    def make(unit: Unit) -> list[TaskId]:
        deadlines = (unit.now, unit.now + timedelta(hours=1))
        new = [NewTask(ids.task_id(), "ship", agent="a", kind="elsewhere", deadline_at=each) for each in deadlines]
        made = [each.id for each in _accept(unit, session_id, *new) if isinstance(each, Task)]
        assert not unit.committed.work
        return made

    late, open_ = await database.transaction(make, name="make")
    assert {(await _found(database, each)).state for each in (late, open_)} == {TaskState.RUNNING}
    assert not await database.read(lambda connection: tasks.running_without(connection, DEAD))
    assert not (await database.read(workers.left)).tasks
    await expire_overdue(database)
    assert (await _found(database, late)).error == task_errors.TIMED_OUT
    await database.transaction(lambda unit: task_moves.request_cancel(unit, open_, owner_id=OWNER), name="cancel")
    assert (await _found(database, open_)).state is TaskState.CANCELED


def test_a_kind_makes_no_move_that_a_task_cannot() -> None:
    """DESIGN 7: the moves of a kind are data."""
    assert set(registry.KINDS) >= {"call"}
    for kind in registry.KINDS.values():
        assert all(set(kind.moves[state]) <= MOVES[state] for state in TaskState)


def test_every_kind_that_needs_a_worker_can_be_started_on_one() -> None:
    """What is durable of a kind and how it is run stand in two registries."""
    assert set(STARTS) == {name for name, kind in registry.KINDS.items() if kind.needs_worker}
