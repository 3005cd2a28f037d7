"""The work of an input: which turns and tasks belong to it, and when it is over."""

from collections.abc import Callable
from typing import Any

from outlast import ids
from outlast.ids import InputId, SessionId, TaskId, TurnId, WorkerId
from outlast.store.database import Database
from outlast.store.repositories import inputs, turns, works
from outlast.store.repositories.inputs import InputKind, InputState, Mode
from outlast.store.repositories.stored_task import NewTask, WakePolicy
from outlast.store.repositories.turns import Origin, TurnState
from outlast.store.repositories.works import InputWork
from outlast.store.unit import Unit
from outlast.transitions.tasks import task_moves
from outlast.wire.task_state import TaskState
from tests.support.stores.store import new_session

WORKER = WorkerId("wrk_one")


class Rows:
    """Writes rows as the loop would, one step a transaction."""

    def __init__(self, database: Database, session_id: SessionId) -> None:
        self._database = database
        self.session_id = session_id

    async def _do(self, fn: Callable[[Unit], Any]) -> Any:
        return await self._database.transaction(fn, name="test")

    async def message(self) -> InputId:
        def keep(unit: Unit) -> InputId:
            session = unit.lock(self.session_id)
            body: dict[str, Any] = {}
            kept = inputs.insert(
                unit,
                session,
                ids.input_id(),
                kind=InputKind.MESSAGE,
                mode=Mode.QUEUE,
                text="go",
                body=body,
                was_busy=False,
            )
            return kept.id

        return await self._do(keep)

    async def turn(self, *delivered: InputId) -> TurnId:
        def begin(unit: Unit) -> TurnId:
            session = unit.lock(self.session_id)
            turn_id = ids.turn_id()
            turns.insert(
                unit,
                session,
                turn_id,
                origin=Origin.USER,
                is_admitted=True,
                first_event=session.next("last_event"),
                model=None,
                worker_id=WORKER,
            )
            inputs.mark_delivered(unit, delivered, turn_id, 1)
            return turn_id

        return await self._do(begin)

    async def end(self, turn_id: TurnId) -> None:
        def end(unit: Unit) -> None:
            turns.move(unit, turn_id, {}, source=TurnState.RUNNING, target=TurnState.COMPLETED, attempt=1)

        await self._do(end)

    async def task(self, turn_id: TurnId, wake: WakePolicy = WakePolicy.ON_TERMINAL) -> TaskId:
        new = NewTask(ids.task_id(), title="t", turn_id=turn_id, agent="scout", wake=wake)
        return (await self._do(lambda unit: task_moves.make(unit, self.session_id, new, worker_id=WORKER))).id

    async def end_task(self, task_id: TaskId) -> InputId | None:
        """Its wake, if it wakes. The session is held, so that nothing starts by itself."""

        def end(unit: Unit) -> InputId | None:
            unit.lock(self.session_id).set(is_held=True)
            task_moves.end(unit, task_id, TaskState.SUCCEEDED, attempt=1)
            waiting = inputs.waiting(unit.connection, self.session_id)
            return next((each.id for each in waiting if each.task_id == task_id), None)

        return await self._do(end)

    async def withdraw(self, task_id: TaskId) -> None:
        await self._do(lambda unit: inputs.withdraw_wakes(unit, self.session_id, [task_id]))

    async def remove(self, input_id: InputId) -> None:
        await self._do(lambda unit: inputs.mark_removed(unit, input_id))

    async def work(self, input_id: InputId) -> InputWork:
        return await self._database.read(lambda connection: works.of_input(connection, self.session_id, input_id))


async def test_it_is_over_when_its_turn_has_ended_and_left_nothing_behind(database: Database) -> None:
    """C1, C2"""
    rows = Rows(database, await new_session(database))
    asked = await rows.message()
    assert (await rows.work(asked)).is_coming
    turn_id = await rows.turn(asked)
    assert (await rows.work(asked)).open_turn == turn_id
    await rows.end(turn_id)
    work = await rows.work(asked)
    assert (work.is_over, work.turn_ids) == (True, [turn_id])


async def test_turns_that_its_tasks_wake_belong_to_it(database: Database) -> None:
    """C2: over tasks of tasks; the last turn is the one that answers."""
    rows = Rows(database, await new_session(database))
    asked = await rows.message()
    turn_ids = [await rows.turn(asked)]
    for _ in range(3):
        task_id = await rows.task(turn_ids[-1])
        await rows.end(turn_ids[-1])
        assert (await rows.work(asked)).open_tasks == [task_id]
        woken = await rows.end_task(task_id)
        assert woken is not None
        work = await rows.work(asked)
        assert (work.is_running, work.is_coming, work.is_over) == (False, True, False)
        turn_ids.append(await rows.turn(woken))
    assert not (await rows.work(asked)).is_over
    await rows.end(turn_ids[-1])
    work = await rows.work(asked)
    assert (work.is_over, work.turn_ids) == (True, turn_ids)


async def test_what_people_say_meanwhile_is_not_part_of_it(database: Database) -> None:
    """C2: an answer to somebody else is never given as this one's."""
    rows = Rows(database, await new_session(database))
    asked, said = await rows.message(), await rows.message()
    first = await rows.turn(asked)
    await rows.end(first)
    other = await rows.turn(said)
    await rows.task(other)
    work = await rows.work(asked)
    assert (work.is_over, work.turn_ids) == (True, [first])


async def test_silent_tasks_and_wakes_that_were_told_hold_nothing_up(database: Database) -> None:
    rows = Rows(database, await new_session(database))
    asked = await rows.message()
    turn_id = await rows.turn(asked)
    await rows.task(turn_id, WakePolicy.SILENT)
    told = await rows.task(turn_id)
    await rows.end_task(told)
    await rows.withdraw(told)
    await rows.end(turn_id)
    assert (await rows.work(asked)).is_over


async def test_an_input_that_was_taken_back_has_no_work(database: Database) -> None:
    rows = Rows(database, await new_session(database))
    asked = await rows.message()
    await rows.remove(asked)
    assert (await rows.work(asked)).is_gone
    assert (await rows.work(InputId("inp_none"))).is_gone


async def test_a_wake_that_waits_for_its_group_is_still_to_come(database: Database) -> None:
    rows = Rows(database, await new_session(database))
    asked = await rows.message()
    turn_id = await rows.turn(asked)
    task_id = await rows.task(turn_id)
    woken = await rows.end_task(task_id)
    await rows.end(turn_id)
    await database.transaction(
        lambda unit: unit.connection.execute(
            inputs.inputs.update().where(inputs.inputs.c.id == woken).values(state=InputState.GROUPED.value)
        ),
        name="group",
    )
    assert (await rows.work(asked)).is_coming
