"""The repositories, one per noun, the same on both databases: what goes in comes out, and constraints hold."""

import sqlite3
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from asyncpg.exceptions import UniqueViolationError

from outlast import ids
from outlast.errors import NotFound
from outlast.ids import InputId, SessionId, TaskId, TurnId, WorkerId
from outlast.limits import Limits
from outlast.store.database import Database
from outlast.store.repositories import inputs, messages, sessions, tasks, turns
from outlast.store.repositories.inputs import InputKind, InputState, Mode
from outlast.store.repositories.stored_task import MOVES, NewTask, Task, WakePolicy
from outlast.store.repositories.turns import Disposition, Origin, TurnState
from outlast.store.unit import Unit
from outlast.transitions import turn, verdicts
from outlast.transitions.tasks import task_moves
from outlast.transitions.turns import inbox, turn_start
from outlast.wire.task_state import TaskState
from tests.support.stores.store import OWNER, new_session

LIMITS = Limits()


async def test_a_session_comes_back_as_it_was_made(database: Database) -> None:
    session_id = ids.session_id()

    def create(unit: Unit) -> None:
        sessions.insert(
            unit, session_id, owner_id=OWNER, agent="scout", model="big", title="Ü", metadata={"a": [1, None]}
        )

    await database.transaction(create, name="create")
    row = await database.read(lambda connection: sessions.get(connection, session_id, OWNER))
    assert row is not None
    assert (row.agent, row.model, row.title, row.metadata) == ("scout", "big", "Ü", {"a": [1, None]})
    assert (row.turn_id, row.is_held, row.woken_turns, row.last_event) == (None, False, 0, 0)
    assert await database.read(lambda connection: sessions.get(connection, session_id, "someone else")) is None


async def test_sessions_are_listed_newest_first_page_by_page_and_only_ones_own(database: Database) -> None:
    """P7: another owner's sessions are not in the list."""
    made = [await new_session(database) for _ in range(5)]
    await new_session(database, owner_id="someone else")
    first = await database.read(lambda connection: sessions.page(connection, OWNER, limit=3))
    second = await database.read(lambda connection: sessions.page(connection, OWNER, limit=3, before=first.next))
    assert [row.id for row in [*first.items, *second.items]] == made[::-1]
    assert second.next is None


def body_of(name: str) -> dict[str, Any]:
    return {"files": [{"id": "file_1", "name": name, "media_type": "text/plain", "bytes": 1}]}


async def test_inputs_wait_in_the_order_in_which_they_came(database: Database) -> None:
    session_id = await new_session(database)

    def keep(unit: Unit) -> None:
        session = unit.lock(session_id)
        for text, mode in (("one", Mode.QUEUE), ("two", Mode.STEER), ("three", Mode.INTERRUPT)):
            inputs.insert(
                unit,
                session,
                ids.input_id(),
                kind=InputKind.MESSAGE,
                mode=mode,
                text=text,
                body=body_of(text),
                was_busy=True,
            )

    await database.transaction(keep, name="keep")
    waiting = await database.read(lambda connection: inputs.waiting(connection, session_id))
    assert [(each.text, each.sequence, each.mode) for each in waiting] == [
        ("one", 1, Mode.QUEUE),
        ("two", 2, Mode.STEER),
        ("three", 3, Mode.INTERRUPT),
    ]
    assert waiting[0].body == body_of("one")

    def deliver(unit: Unit) -> None:
        inputs.mark_delivered(unit, [waiting[1].id], TurnId("trn_1"), 7)
        inputs.mark_delivered(unit, [waiting[1].id], TurnId("trn_2"), 8)

    await database.transaction(deliver, name="deliver")
    delivered = await database.read(lambda connection: inputs.get(connection, session_id, waiting[1].id))
    assert delivered is not None
    assert (delivered.state, delivered.turn_id, delivered.message) == (InputState.DELIVERED, "trn_1", 7), "only once"
    left = await database.read(lambda connection: inputs.waiting(connection, session_id))
    assert [each.text for each in left] == ["one", "three"]


async def test_messages_are_appended_in_order(database: Database) -> None:
    session_id = await new_session(database)

    def write(unit: Unit) -> list[int]:
        session = unit.lock(session_id)
        return [
            messages.append(unit, session, turn_id=None, kind="request", body=f'{{"n":{n}}}', event=n) for n in range(5)
        ]

    assert await database.transaction(write, name="write") == [1, 2, 3, 4, 5]
    assert await database.transaction(write, name="write") == [6, 7, 8, 9, 10]
    page = await database.read(lambda connection: messages.page(connection, session_id, after=3, limit=4))
    assert [row.position for row in page] == [4, 5, 6, 7]
    last = await database.read(lambda connection: messages.last(connection, session_id))
    assert last is not None
    assert (last.position, last.body) == (10, '{"n":4}')


async def test_messages_that_are_superseded_are_kept_and_no_longer_seen(database: Database) -> None:
    """D10: each is superseded once; what comes after is seen again."""
    session_id = await new_session(database)

    def write(unit: Unit) -> None:
        session = unit.lock(session_id)
        for n in range(3):
            messages.append(unit, session, turn_id=None, kind="request", body="{}", event=n)

    await database.transaction(write, name="write")
    for turn_id in ("trn_1", "trn_2"):
        await database.transaction(
            lambda unit, turn_id=turn_id: messages.supersede(unit, session_id, after=1, by=TurnId(turn_id)), name="mark"
        )
        await database.transaction(write, name="write")
    stored = await database.read(lambda connection: messages.page(connection, session_id))
    assert [row.superseded_by for row in stored] == [None, "trn_1", "trn_1", *["trn_2"] * 3, None, None, None]
    seen = await database.read(lambda connection: messages.page(connection, session_id, seen_only=True))
    assert [row.position for row in seen] == [1, 7, 8, 9]


async def start_turn(database: Database, session_id: SessionId) -> TurnId:
    def start(unit: Unit) -> TurnId:
        return turn_start.start(unit, unit.lock(session_id), Origin.USER)

    return await database.transaction(start, name="start")


async def test_the_database_refuses_a_second_open_turn(database: Database) -> None:
    """P5: even code that forgot to look cannot make two; once the first has ended, the next one may be made."""
    session_id = await new_session(database)
    first = await start_turn(database, session_id)
    with pytest.raises((sqlite3.IntegrityError, UniqueViolationError)):
        await start_turn(database, session_id)

    def stop(unit: Unit) -> None:
        turns.move(unit, first, {}, source=TurnState.QUEUED, target=TurnState.STOPPED, attempt=0)

    await database.transaction(stop, name="stop")
    second = await start_turn(database, session_id)
    last = await database.read(lambda connection: turns.last_of(connection, session_id))
    assert last is not None
    assert last.id == second


async def test_moves_are_answers(database: Database) -> None:
    """P5: moved, already there, or stale: races do not raise, and only the first changes anything."""
    session_id = await new_session(database)
    turn_id = await start_turn(database, session_id)

    def run(unit: Unit) -> list[Disposition]:
        values = {"attempt": 1, "worker_id": "wrk_1"}
        moves = [
            turns.move(unit, turn_id, values, source=TurnState.QUEUED, target=TurnState.RUNNING, attempt=0),
            turns.move(unit, turn_id, {}, source=TurnState.RUNNING, target=TurnState.COMPLETED, attempt=7),
            turns.move(unit, turn_id, {}, source=TurnState.RUNNING, target=TurnState.COMPLETED, attempt=1),
            turns.move(unit, turn_id, {}, source=TurnState.RUNNING, target=TurnState.COMPLETED, attempt=1),
            turns.move(unit, turn_id, {}, source=TurnState.RUNNING, target=TurnState.FAILED, attempt=1),
        ]
        assert turns.may_write(unit, turn_id, 1) is None
        return moves

    assert await database.transaction(run, name="run") == [
        Disposition.MOVED,
        Disposition.STALE_ATTEMPT,
        Disposition.MOVED,
        Disposition.ALREADY_THERE,
        Disposition.STALE_ATTEMPT,
    ]


@pytest.mark.parametrize(
    ("source", "target"),
    [(source, target) for source in TurnState for target in TurnState if target not in turns.MOVES[source]],
)
def test_what_is_not_a_move_is_refused(source: TurnState, target: TurnState) -> None:
    """The table of moves is data; there is no way around it."""
    unit: Any = None
    with pytest.raises(AssertionError, match="is not a move"):
        turns.move(unit, TurnId("trn_1"), {}, source=source, target=target, attempt=0)


def test_the_moves_are_those_of_the_design() -> None:
    over = {TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELED}
    assert {state: set(onward) for state, onward in MOVES.items()} == {
        TaskState.QUEUED: {TaskState.RUNNING, TaskState.AWAITING_INPUT, TaskState.CANCELED, TaskState.FAILED},
        TaskState.RUNNING: {TaskState.AWAITING_INPUT, TaskState.QUEUED, *over},
        TaskState.AWAITING_INPUT: {TaskState.RUNNING, TaskState.QUEUED, *over},
        **{state: set[TaskState]() for state in over},
    }
    ended = {TurnState.COMPLETED, TurnState.FAILED, TurnState.STOPPED}
    assert {state: set(onward) for state, onward in turns.MOVES.items()} == {
        TurnState.QUEUED: {TurnState.RUNNING, TurnState.STOPPED},
        TurnState.RUNNING: {TurnState.QUEUED, *ended},
        **{state: set[TurnState]() for state in ended},
    }


async def test_a_task_comes_back_and_ends_once(database: Database) -> None:
    """P3: the first end wins, a later one is kept beside it; state and event come together."""
    session_id = await new_session(database)
    new = NewTask(
        ids.task_id(), "Survey", agent="agent", tool="survey", wake=WakePolicy.SILENT, ran_for=timedelta(seconds=2)
    )

    def make(unit: Unit) -> Task:
        return task_moves.make(unit, session_id, new, worker_id=WorkerId("wrk_1"))

    made = await database.transaction(make, name="make")
    assert (made.title, made.tool, made.state, made.attempt) == ("Survey", "survey", TaskState.RUNNING, 1)

    def end(unit: Unit, state: TaskState, attempt: int) -> Disposition:
        return task_moves.end(unit, new.id, state, attempt=attempt, result="deep")

    stale = await database.transaction(lambda unit: end(unit, TaskState.FAILED, 9), name="end")
    first = await database.transaction(lambda unit: end(unit, TaskState.SUCCEEDED, 1), name="end")
    second = await database.transaction(lambda unit: end(unit, TaskState.FAILED, 1), name="end")
    assert (stale, first, second) == (Disposition.STALE_ATTEMPT, Disposition.MOVED, Disposition.STALE_ATTEMPT)
    task = await database.read(lambda connection: tasks.get(connection, new.id))
    assert task is not None
    assert (task.state, task.result) == (TaskState.SUCCEEDED, "deep")
    assert task.late_outcome is not None
    assert task.late_outcome["state"] == "failed"


async def test_everything_of_another_owner_is_unknown(database: Database) -> None:
    """P7: for every move an owner can ask for, somebody else's id and an id that never was give one answer."""
    session_id = await new_session(database)
    sent = await database.transaction(
        lambda unit: inbox.accept(unit, session_id, "hello", owner_id=OWNER), name="accept"
    )
    task = NewTask(ids.task_id(), "Survey", agent="agent")
    await database.transaction(
        lambda unit: task_moves.make(unit, session_id, task, worker_id=WorkerId("wrk_1")), name="make"
    )

    def moves(
        owner: str, session: SessionId, input_id: InputId, task_id: TaskId
    ) -> dict[str, Callable[[Unit], object]]:
        return {
            "send": lambda unit: inbox.accept(unit, session, "x", owner_id=owner),
            "edit": lambda unit: inbox.edit(unit, session, input_id, "x", owner_id=owner),
            "remove": lambda unit: inbox.remove(unit, session, input_id, owner_id=owner),
            "stop": lambda unit: turn.request_stop(unit, session, owner_id=owner),
            "resume": lambda unit: turn.resume(unit, session, owner_id=owner),
            "retry": lambda unit: turn.retry(unit, session, owner_id=owner),
            "settle": lambda unit: verdicts.of_call(
                unit, session, "c", verdicts.Verdict.WORKED, by="x", note="", owner_id=owner
            ),
            "cancel": lambda unit: task_moves.request_cancel(unit, task_id, owner_id=owner),
        }

    foreign = moves("someone else", session_id, sent.input.id, task.id)
    unknown = moves(OWNER, SessionId("ses_never"), sent.input.id, TaskId("tsk_never"))
    for name in foreign:
        answers: list[tuple[str, str]] = []
        for fn in (foreign[name], unknown[name]):
            with pytest.raises(NotFound) as caught:
                await database.transaction(fn, name=name)
            answers.append((caught.value.code, caught.value.message))
        assert answers[0] == answers[1], name
    waiting = await database.read(lambda connection: inputs.waiting(connection, session_id))
    assert [each.text for each in waiting] == ["hello"], "and nothing was changed"


async def test_the_next_turn_of_a_session_is_found(database: Database) -> None:
    """A client that names the last answer it has gets the one after it, never one of another session."""
    session_id, other_id = await new_session(database), await new_session(database)

    def start(unit: Unit, session_id: SessionId) -> TurnId:
        turn_id = turn_start.start(unit, unit.lock(session_id), Origin.USER)
        turn.request_stop(unit, session_id, owner_id=OWNER)
        return turn_id

    made = [await database.transaction(lambda unit: start(unit, session_id), name="start") for _ in range(3)]
    await database.transaction(lambda unit: start(unit, other_id), name="start")

    async def after(turn_id: TurnId) -> TurnId | None:
        row = await database.read(lambda connection: turns.get(connection, turn_id))
        assert row is not None
        found = await database.read(lambda connection: turns.next_of(connection, session_id, after=row.first_event))
        return None if found is None else found.id

    assert [await after(turn_id) for turn_id in made] == [made[1], made[2], None]
    latest = await database.read(lambda connection: turns.latest(connection, session_id, limit=2))
    assert [row.id for row in latest] == made[1:]
    before = latest[0].first_event
    earlier = await database.read(lambda connection: turns.latest(connection, session_id, limit=2, before=before))
    assert [row.id for row in earlier] == made[:1]
