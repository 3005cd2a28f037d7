"""What tasks ask people for, over both stores: asked, answered, approved and refused, and told each time."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from outlast import ids
from outlast.duties.overdue_tasks import expire_overdue
from outlast.errors import AttemptLost, Conflict, Forbidden, InvalidInput, NotFound, OutlastError
from outlast.ids import SessionId, TaskId, WorkerId
from outlast.store.database import Database
from outlast.store.repositories import events, inputs, sessions, tasks
from outlast.store.repositories.inputs import InputKind
from outlast.store.repositories.stored_task import NewTask, Task
from outlast.store.unit import Unit
from outlast.transitions.tasks import requests, task_moves
from outlast.transitions.tasks.requests import ByKind, Given, Question
from outlast.wire.task_state import TaskState
from tests.support.stores.store import OWNER, new_session

WORKER = WorkerId("wrk_here")
COLOUR = Question(0, "Which colour?")
AGE = Question(1, "How old?", {"type": "integer", "minimum": 0})


async def _running(database: Database, *, may_run_again: bool = False) -> Task:
    session_id = await new_session(database)

    def make(unit: Unit) -> Task:
        deadline = unit.now + timedelta(hours=1)
        new = NewTask(
            ids.task_id(), "paint", agent="a", tool="paint", may_run_again=may_run_again, deadline_at=deadline
        )
        return task_moves.make(unit, session_id, new, worker_id=WORKER)

    return await database.transaction(make, name="make")


async def _approval(database: Database, *, seconds: float = 3600) -> Task:
    session_id = await new_session(database)

    def make(unit: Unit) -> Task:
        request = {"id": ids.request_id(), "kind": "approval", "prompt": "May I?", "asked_at": unit.now.isoformat()}
        new = NewTask(
            ids.task_id(),
            "wire",
            agent="a",
            tool="wire",
            spec={"args": {"to": "Ada"}, "args_schema": {"type": "object", "properties": {"to": {"type": "string"}}}},
            deadline_at=unit.now + timedelta(seconds=seconds),
            request={**request, "left_seconds": 60.0},
        )
        return task_moves.make(unit, session_id, new, worker_id=None)

    return await database.transaction(make, name="make")


async def _ask(
    database: Database, task: Task, question: Question = COLOUR, *, is_told: bool = False, attempt: int = 1
) -> Given | None:
    return await database.transaction(
        lambda unit: requests.ask(unit, task.id, question, attempt=attempt, is_told=is_told), name="ask"
    )


async def _answer(
    database: Database,
    task: Task,
    value: Any,
    *,
    by: str = "Ada",
    owner_id: str = OWNER,
    by_kind: ByKind = "person",
    request_id: str | None = None,
) -> Task:
    answer = partial(requests.answer, task_id=task.id, value=value, owner_id=owner_id, by=by, by_kind=by_kind)
    return await database.transaction(partial(answer, request_id=request_id), name="answer")


async def _approve(database: Database, task: Task, *, by: str = "Ada", args: Any = None) -> Task:
    return await database.transaction(
        lambda unit: requests.approve(unit, task.id, owner_id=OWNER, by=by, args=args), name="approve"
    )


async def _refuse(database: Database, task: Task, *, by: str = "Ada", reason: str = "") -> Task:
    return await database.transaction(
        lambda unit: requests.refuse(unit, task.id, owner_id=OWNER, by=by, reason=reason), name="refuse"
    )


async def _found(database: Database, task_id: TaskId) -> Task:
    task = await database.read(lambda connection: tasks.get(connection, task_id))
    assert task is not None
    return task


async def _told(database: Database, session_id: SessionId) -> list[tuple[str, dict[str, Any]]]:
    found = await database.read(lambda connection: events.page(connection, session_id, 0))
    return [(each.type, each.data) for each in found if each.type.startswith("request.")]


async def _inputs(database: Database, session_id: SessionId) -> list[inputs.Input]:
    return await database.read(lambda connection: inputs.waiting(connection, session_id))


def _closed(task: Task) -> dict[str, Any]:
    assert task.request is not None
    return task.request["closed"]


async def test_a_question_is_told_and_keeps_its_worker(database: Database) -> None:
    """B8, B7: event, feed line, unread mark and a notice for the model, in one commit."""
    task = await _running(database)
    assert await _ask(database, task) is None
    asking = await _found(database, task.id)
    assert (asking.state, asking.worker_id) == (TaskState.AWAITING_INPUT, WORKER)
    assert asking.request is not None
    assert asking.deadline_at is not None
    assert task.deadline_at is not None
    assert asking.deadline_at - task.deadline_at > timedelta(days=6), "the person's own limit, not the call's"
    ((type_, opened),) = await _told(database, task.session_id)
    assert (type_, opened["request"]["prompt"], opened["tool"]) == ("request.opened", "Which colour?", "paint")
    session = await database.read(lambda connection: sessions.get(connection, task.session_id, OWNER))
    assert session is not None
    assert session.answered_event > session.read_event
    notices = await database.read(lambda connection: _all_notices(connection, task.session_id))
    assert len(notices) == 1
    assert "Which colour?" in notices[0]


def _all_notices(connection: Any, session_id: SessionId) -> list[str]:
    return [each.text for each in inputs.waiting(connection, session_id) if each.kind is InputKind.REQUEST]


async def test_an_answer_lets_the_task_go_on_where_it_waits(database: Database) -> None:
    """B8: on its worker, without queueing, with the time that its call had left."""
    task = await _running(database)
    await _ask(database, task)
    going = await _answer(database, task, "blue")
    assert (going.state, going.worker_id, going.attempt) == (TaskState.RUNNING, WORKER, 1)
    assert going.deadline_at is not None
    assert task.deadline_at is not None
    assert abs(going.deadline_at - task.deadline_at) < timedelta(minutes=1)
    assert await _ask(database, task) == Given("blue"), "who asks again gets what was answered"
    told = [type_ for type_, _ in await _told(database, task.session_id)]
    assert told == ["request.opened", "request.closed"]


@pytest.mark.parametrize("is_told", [True, False])
async def test_the_model_is_told_of_a_question_once(database: Database, is_told: bool) -> None:
    """B7: by its handle, or by a notice; a question that is asked anew after a death keeps its id and tells nobody."""
    task = await _running(database)
    await _ask(database, task, is_told=is_told)
    first = (await _found(database, task.id)).request
    await _ask(database, task)
    again = (await _found(database, task.id)).request
    assert first is not None
    assert again is not None
    assert first["id"] == again["id"]
    notices = await database.read(lambda connection: _all_notices(connection, task.session_id))
    assert len(notices) == (0 if is_told else 1)
    assert len(await _told(database, task.session_id)) == 1


async def test_the_first_answer_wins_and_later_ones_are_told_whose_it_was(database: Database) -> None:
    """B8: 409 with who answered."""
    task = await _running(database)
    await _ask(database, task)
    await _answer(database, task, "blue", by="Ada")
    with pytest.raises(Conflict, match="already answered by Ada"):
        await _answer(database, task, "red", by="Bob")
    assert _closed(await _found(database, task.id))["value"] == "blue"


async def test_two_answers_at_the_same_instant_have_one_effect(database: Database) -> None:
    """B8: one of them counts, the other is told whose it was."""
    task = await _running(database)
    await _ask(database, task)
    came = await asyncio.gather(
        *(_answer(database, task, each, by=each) for each in ("Ada", "Bob", "Eve")), return_exceptions=True
    )
    won = [each for each in came if isinstance(each, Task)]
    lost = [each for each in came if isinstance(each, Conflict)]
    assert (len(won), len(lost)) == (1, 2)
    winner = _closed(won[0])["by"]
    assert all(each.details["by"] == winner for each in lost)


async def test_what_does_not_fit_is_refused_and_the_question_stays_open(database: Database) -> None:
    """B8: the first *valid* answer wins."""
    task = await _running(database)
    await _ask(database, task, AGE)
    with pytest.raises(InvalidInput, match="does not fit"):
        await _answer(database, task, "old")
    with pytest.raises(Conflict, match="asks something else"):
        await _answer(database, task, 3, request_id="req_other")
    with pytest.raises(NotFound):
        await _answer(database, task, 3, owner_id="somebody else")
    assert (await _found(database, task.id)).state is TaskState.AWAITING_INPUT
    assert (await _answer(database, task, 3)).state is TaskState.RUNNING


async def test_a_question_without_a_schema_is_answered_with_text(database: Database) -> None:
    """B8."""
    task = await _running(database)
    await _ask(database, task)
    for value in (3, {"colour": "blue"}, None):
        with pytest.raises(InvalidInput, match="text"):
            await _answer(database, task, value)


async def test_a_question_of_a_tool_that_may_run_again_outlives_its_worker(database: Database) -> None:
    """B8: the answer may come while nobody runs it, and the second attempt gets it."""
    task = await _running(database, may_run_again=True)
    await _ask(database, task)
    asked = (await _found(database, task.id)).request
    dead = await database.read(lambda connection: tasks.running_without(connection, WorkerId("wrk_other")))
    assert [each.id for each in dead] == [task.id]
    await database.transaction(lambda unit: task_moves.orphaned(unit, dead[0]), name="orphaned")
    waiting = await _found(database, task.id)
    assert (waiting.state, waiting.request) == (TaskState.QUEUED, asked)
    answered = await _answer(database, task, "blue")
    assert answered.state is TaskState.QUEUED
    assert requests.given(answered, COLOUR) == Given("blue")
    assert requests.given(answered, Question(0, "Which colours?")) is None, "another question is another question"


async def test_a_question_of_a_tool_that_may_not_run_again_ends_with_its_worker(database: Database) -> None:
    """B8: a reply after that is told why it is too late."""
    task = await _running(database)
    await _ask(database, task)
    asking = await _found(database, task.id)
    await database.transaction(lambda unit: task_moves.orphaned(unit, asking), name="orphaned")
    ended = await _found(database, task.id)
    assert ended.error is not None
    assert ended.error["kind"] == "interrupted"
    assert _closed(ended)["how"] == "ended"
    with pytest.raises(Conflict, match="may or may not have taken effect"):
        await _answer(database, task, "blue")


async def test_an_answer_before_the_death_is_shown_with_it(database: Database) -> None:
    """B8: what was accepted is not lost."""
    task = await _running(database)
    await _ask(database, task)
    answered = await _answer(database, task, "blue")
    await database.transaction(lambda unit: task_moves.orphaned(unit, answered), name="orphaned")
    ended = await _found(database, task.id)
    assert ended.state is TaskState.FAILED
    assert (_closed(ended)["value"], _closed(ended)["by"]) == ("blue", "Ada")


async def test_a_superseded_attempt_asks_nothing(database: Database) -> None:
    """P5."""
    task = await _running(database, may_run_again=True)
    await database.transaction(lambda unit: task_moves.orphaned(unit, task), name="orphaned")
    with pytest.raises(AttemptLost):
        await _ask(database, task)


async def test_a_tool_that_no_longer_waits_takes_its_question_back(database: Database) -> None:
    """B8: and a later answer is told so."""
    task = await _running(database)
    await _ask(database, task)
    request = (await _found(database, task.id)).request
    assert request is not None
    await database.transaction(lambda unit: requests.withdraw(unit, task.id, request["id"], attempt=1), name="withdraw")
    assert (await _found(database, task.id)).state is TaskState.RUNNING
    with pytest.raises(Conflict, match="no longer waits"):
        await _answer(database, task, "blue")


async def test_a_question_that_nobody_answers_ends_its_task_at_the_deadline(database: Database) -> None:
    """B8: failed with a timeout, told, and whoever runs it learns that it is over."""
    task = await _running(database)
    await _ask(database, task)
    await database.transaction(lambda unit: tasks.set_values(unit, task.id, deadline_at=unit.now_us), name="late")
    await expire_overdue(database)
    ended = await _found(database, task.id)
    assert ended.error is not None
    assert (ended.state, ended.error["kind"], _closed(ended)["how"]) == (TaskState.FAILED, "timeout", "expired")


async def test_a_cancel_of_a_task_that_asks_reaches_its_worker(database: Database) -> None:
    """P6: its code waits there and confirms it."""
    task = await _running(database)
    await _ask(database, task)
    asked = await database.transaction(
        lambda unit: task_moves.request_cancel(unit, task.id, owner_id=OWNER), name="cancel"
    )
    assert asked.cancel_requested_at is not None
    assert await database.read(lambda connection: tasks.to_cancel(connection, WORKER)) == [task.id]
    await database.transaction(lambda unit: task_moves.end(unit, task.id, TaskState.CANCELED, attempt=1), name="end")
    assert _closed(await _found(database, task.id))["how"] == "ended"


async def test_no_model_decides_an_approval(database: Database) -> None:
    """A13: nor does an answer decide it, whoever gives it."""
    task = await _approval(database)
    with pytest.raises(Forbidden):
        await _answer(database, task, "yes", by_kind="model")
    with pytest.raises(InvalidInput, match="approve or refuse"):
        await _answer(database, task, "yes")
    assert (await _found(database, task.id)).state is TaskState.AWAITING_INPUT


async def test_an_approved_call_is_handed_to_a_worker(database: Database) -> None:
    """A13: queued, with work for the engine and the time that its call may take from then on."""
    task = await _approval(database)
    work: list[str] = []

    def approve(unit: Unit) -> Task:
        done = requests.approve(unit, task.id, owner_id=OWNER, by="Ada")
        work.extend(each.id for each in unit.committed.work)
        return done

    approved = await database.transaction(approve, name="approve")
    assert (approved.state, approved.attempt, work) == (TaskState.QUEUED, 0, [task.id])
    assert approved.spec["approved"]["by"] == "Ada"
    assert approved.deadline_at is not None
    assert task.deadline_at is not None
    assert approved.deadline_at < task.deadline_at
    opened, closed = await _told(database, task.session_id)
    assert (opened[0], closed[0]) == ("request.opened", "request.closed")
    assert (closed[1]["how"], closed[1]["by"], closed[1]["args_changed"]) == ("approved", "Ada", False)
    assert closed[1]["args"] == opened[1]["request"].get("args")


async def test_an_approval_may_change_the_arguments(database: Database) -> None:
    """A13: they are checked first, and stand in the event."""
    task = await _approval(database)
    for wrong in ("Bob", {"to": 3}):
        with pytest.raises(InvalidInput):
            await _approve(database, task, args=wrong)
    approved = await _approve(database, task, args={"to": "Bob"})
    assert approved.spec["args"] == {"to": "Bob"}
    _, (_, closed) = await _told(database, task.session_id)
    assert (closed["args_changed"], closed["args"]) == (True, {"to": "Bob"})


async def test_a_refused_call_ends_and_wakes_with_the_reason(database: Database) -> None:
    """A13: it is not run, and the model is told who refused it and why."""
    task = await _approval(database)
    refused = await _refuse(database, task, reason="too dear")
    assert refused.state is TaskState.FAILED
    assert refused.error == {"kind": "rejected", "message": "Ada refused it, and it was not run. Reason: too dear"}
    (woken,) = [each for each in await _inputs(database, task.session_id) if each.kind is InputKind.WAKE]
    assert "too dear" in woken.text


async def test_two_people_decide_at_the_same_instant(database: Database) -> None:
    """A13: one wins, and the other is told who."""
    task = await _approval(database)
    came = await asyncio.gather(
        _approve(database, task, by="Ada"), _refuse(database, task, by="Bob"), return_exceptions=True
    )
    (won,) = [each for each in came if isinstance(each, Task)]
    (lost,) = [each for each in came if isinstance(each, OutlastError)]
    assert isinstance(lost, Conflict)
    assert lost.details["by"] == _closed(won)["by"]


async def test_an_approval_after_a_cancel_is_told_so(database: Database) -> None:
    """A13: repeat and cancel."""
    task = await _approval(database)
    await database.transaction(lambda unit: task_moves.request_cancel(unit, task.id, owner_id=OWNER), name="cancel")
    with pytest.raises(Conflict, match="canceled"):
        await _approve(database, task)


async def test_an_approval_that_nobody_gives_ends_at_its_deadline(database: Database) -> None:
    """A13: failed with a timeout, and told."""
    task = await _approval(database, seconds=0)
    await expire_overdue(database)
    ended = await _found(database, task.id)
    assert (ended.state, _closed(ended)["how"]) == (TaskState.FAILED, "expired")
    assert [type_ for type_, _ in await _told(database, task.session_id)] == ["request.opened", "request.closed"]
