"""Many tasks in one transaction are each moved as one alone is: the first end wins, and nothing is claimed twice."""

from collections.abc import Sequence
from functools import partial

import pytest

from outlast import ids
from outlast.calls.intake import TaskIntake
from outlast.ids import SessionId, TaskId, WorkerId
from outlast.store.database import Database
from outlast.store.group_commit import GroupCommit, LeftOut
from outlast.store.repositories import tasks
from outlast.store.repositories.stored_task import NewTask, Task, WakePolicy
from outlast.store.repositories.turns import Disposition
from outlast.store.unit import Unit
from outlast.transitions.tasks import many_tasks
from outlast.transitions.tasks.many_tasks import Claimed, Ending
from outlast.wire.task_state import TaskState
from tests.support.stores.store import new_session, stored_events

ME = WorkerId("wrk_me")


class NotAllowed(Exception):
    """This worker may not claim."""


def allowed(unit: Unit, worker_id: WorkerId) -> bool:
    return worker_id == ME


def refused(unit: Unit, worker_id: WorkerId) -> bool:
    raise NotAllowed


async def accepted(
    database: Database, session_id: SessionId, count: int = 1, wake: WakePolicy = WakePolicy.SILENT
) -> list[TaskId]:
    intake = TaskIntake(database)
    new = [
        NewTask(ids.task_id(), "work", call_id=f"call_{at}", tool="work", agent="agent", wake=wake)
        for at in range(count)
    ]
    return [(await intake.accept(session_id, each)).id for each in new]


async def claim(database: Database, *task_ids: TaskId) -> Sequence[object]:
    return await database.transaction(
        lambda unit: many_tasks.claim(unit, task_ids, ME, permit=allowed, is_alone=False), name="claim"
    )


async def end(database: Database, *endings: Ending, is_alone: bool = False) -> Sequence[object]:
    end = partial(many_tasks.end, endings=endings, is_alone=is_alone)
    return await database.transaction(end, name="end")


async def found(database: Database, task_id: TaskId) -> Task:
    task = await database.read(lambda connection: tasks.get(connection, task_id))
    assert task is not None
    return task


async def told(database: Database, session_id: SessionId) -> list[tuple[str, str]]:
    events = await stored_events(database, session_id)
    return [(each.type, each.data["task"]["state"]) for each in events if each.task_id]


async def test_each_is_claimed_once_also_when_it_is_asked_for_twice(database: Database) -> None:
    """P5: a job may come twice."""
    session_id = await new_session(database)
    one, two = await accepted(database, session_id, 2)
    answers = await claim(database, one, two, one)
    assert [type(each) for each in answers] == [Claimed, Claimed, type(None)]
    assert await claim(database, one, two) == [None, None]
    assert {(each.attempt, each.worker_id) for each in [await found(database, one), await found(database, two)]} == {
        (1, ME)
    }
    assert await told(database, session_id) == [
        *[("task.created", "queued")] * 2,
        *[("task.changed", "running")] * 2,
    ]


async def test_what_is_not_there_is_not_claimed_and_keeps_no_other_from_it(database: Database) -> None:
    session_id = await new_session(database)
    (one,) = await accepted(database, session_id)
    answers = await claim(database, TaskId("tsk_unknown"), one)
    assert [type(each) for each in answers] == [type(None), Claimed]


async def test_who_may_not_claim_claims_nothing(database: Database) -> None:
    session_id = await new_session(database)
    one, two = await accepted(database, session_id, 2)
    with pytest.raises(NotAllowed):
        await database.transaction(
            lambda unit: many_tasks.claim(unit, [one, two], ME, permit=refused, is_alone=False), name="claim"
        )
    assert (await found(database, one)).state is TaskState.QUEUED


async def test_the_first_end_wins_in_a_group_and_after_it(database: Database) -> None:
    """P3: one that comes later is shown, and changes nothing."""
    session_id = await new_session(database)
    one, two = await accepted(database, session_id, 2)
    await claim(database, one, two)
    settle: GroupCommit[Ending, Disposition] = GroupCommit(database, partial(many_tasks.end), name="end")
    done = Ending(session_id, one, 1, TaskState.SUCCEEDED, result={"metres": 7})
    late = Ending(session_id, one, 1, TaskState.FAILED, error={"kind": "tool_error", "message": "too late"})
    stale = Ending(session_id, two, 3, TaskState.SUCCEEDED)
    other = Ending(session_id, two, 1, TaskState.FAILED, error={"kind": "tool_error", "message": "closed"})
    assert await end(database, done, late, stale, other) == [
        Disposition.MOVED,
        LeftOut.ALONE,
        LeftOut.ALONE,
        Disposition.MOVED,
    ]
    assert [await settle.ask(each) for each in (late, stale)] == [Disposition.STALE_ATTEMPT] * 2
    first, second = await found(database, one), await found(database, two)
    assert (first.state, first.result, first.error) == (TaskState.SUCCEEDED, {"metres": 7}, None)
    assert first.late_outcome is not None
    assert first.late_outcome["error"] == late.error
    assert (second.state, second.result, second.error) == (TaskState.FAILED, None, other.error)
    assert second.ended_at is not None
    events = await told(database, session_id)
    assert [each for each in events if each[0] == "task.ended"] == [
        ("task.ended", "succeeded"),
        ("task.ended", "failed"),
    ]


async def test_an_end_that_wakes_somebody_is_left_out_of_a_group(database: Database) -> None:
    """B7: what it starts has locks of its own."""
    session_id = await new_session(database)
    (silent,) = await accepted(database, session_id)
    (waking,) = await accepted(database, session_id, wake=WakePolicy.ON_TERMINAL)
    await claim(database, silent, waking)
    endings = [Ending(session_id, each, 1, TaskState.SUCCEEDED, result="done") for each in (silent, waking)]
    assert await end(database, *endings) == [Disposition.MOVED, LeftOut.ALONE]
    assert await end(database, endings[1], is_alone=True) == [Disposition.MOVED]
    assert any(each.type == "input.accepted" for each in await stored_events(database, session_id))
