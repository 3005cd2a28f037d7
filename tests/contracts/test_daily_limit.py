"""The daily stop at every place where a turn begins, on both databases."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import pytest

from outlast import ids
from outlast.errors import LimitReached
from outlast.ids import SessionId, TaskId, TurnId, WorkerId
from outlast.limits import Limits
from outlast.store.database import Database
from outlast.store.repositories import inputs, spending, turns
from outlast.store.repositories.inputs import InputKind
from outlast.store.repositories.turns import Origin, TurnRow, TurnState
from outlast.store.unit import Unit
from outlast.transitions import turn
from outlast.transitions.turns import daily_limit, inbox, turn_start
from tests.support.stores.store import OWNER, Outbox, count_events, new_session, under

T = TypeVar("T")
LIMITS = Limits(max_running_per_owner=1, daily_cost=100, company=timedelta(seconds=2))
WORKER = WorkerId("wrk_1")


async def do(database: Database, fn: Callable[[Unit], T]) -> T:
    return await database.transaction(fn, name="do")


async def spend(database: Database, cost: int | None) -> None:
    used = {"input_tokens": 1, "output_tokens": 1, "cache_read_tokens": 0, "cache_write_tokens": 0}
    await do(database, lambda unit: spending.add(unit, OWNER, {**used, "cost_microdollars": cost}))


async def start(database: Database, session_id: SessionId) -> TurnId:
    return await do(database, lambda unit: turn_start.start(under(LIMITS, unit), unit.lock(session_id), Origin.USER))


async def wake(database: Database, session_id: SessionId) -> TurnRow:
    def notify(unit: Unit) -> None:
        inbox.notify(under(LIMITS, unit), session_id, InputKind.WAKE, "done", task_id=TaskId(ids.task_id()))

    await do(database, notify)
    return await last_turn(database, session_id)


async def last_turn(database: Database, session_id: SessionId) -> TurnRow:
    row = await database.read(lambda connection: turns.last_of(connection, session_id))
    assert row is not None
    return row


async def midnight(database: Database) -> object:
    return await do(database, lambda unit: daily_limit.next_midnight(unit.now))


@pytest.fixture
async def session_id(database: Database) -> SessionId:
    return await new_session(database)


async def test_below_the_limit_everything_starts(database: Database, session_id: SessionId) -> None:
    """H2: what cost nobody knows does not count, and neither does what others spend."""
    await spend(database, 99)
    await spend(database, None)
    assert (await wake(database, session_id)).not_before is None


async def test_a_person_is_refused_and_told_until_when(database: Database, session_id: SessionId) -> None:
    """H2: nothing is stored."""
    await spend(database, 100)
    with pytest.raises(LimitReached) as caught:
        await do(database, lambda unit: inbox.accept(under(LIMITS, unit), session_id, "Hello", owner_id=OWNER))
    assert caught.value.code == "limit_reached"
    assert (
        caught.value.details["reset_at"] == (await do(database, lambda u: daily_limit.next_midnight(u.now))).isoformat()
    )
    assert 0 < caught.value.details["retry_after"] <= 86_400
    assert await database.read(lambda connection: inputs.waiting(connection, session_id)) == []
    assert await count_events(database) == 0


async def test_a_person_who_writes_to_a_running_turn_is_refused_too(database: Database, session_id: SessionId) -> None:
    """H2: the turn goes on to its end, and not for longer."""
    turn_id = await start(database, session_id)
    await do(database, lambda unit: turn.claim(under(LIMITS, unit), turn_id, WORKER))
    await spend(database, 100)
    with pytest.raises(LimitReached):
        await do(database, lambda unit: inbox.accept(under(LIMITS, unit), session_id, "More", owner_id=OWNER))
    assert (await last_turn(database, session_id)).state is TurnState.RUNNING


async def test_a_repeated_message_is_known_also_at_the_limit(database: Database, session_id: SessionId) -> None:
    """H2, D2: the first one was accepted; whoever lost the answer gets it again."""

    def accept(unit: Unit) -> inbox.Accepted:
        return inbox.accept(under(LIMITS, unit), session_id, "Hello", owner_id=OWNER, idempotency_key="k")

    first = await do(database, accept)
    await spend(database, 100)
    again = await do(database, accept)
    assert (again.input.id, again.is_repeat) == (first.input.id, True)


async def test_resume_and_retry_are_refused_and_change_nothing(database: Database, session_id: SessionId) -> None:
    """H2."""
    turn_id = await start(database, session_id)
    await do(database, lambda unit: turn.request_stop(under(LIMITS, unit), session_id, owner_id=OWNER))
    await spend(database, 100)
    before = await count_events(database)
    for again in (turn.resume, turn.retry):
        with pytest.raises(LimitReached):
            await do(database, lambda unit, fn=again: fn(under(LIMITS, unit), session_id, owner_id=OWNER))
    assert await count_events(database) == before
    assert (await last_turn(database, session_id)).id == turn_id


async def test_a_wake_waits_for_the_next_day(database: Database, session_id: SessionId) -> None:
    """H2: its turn stays queued, and the engine gets it for midnight."""
    outbox = Outbox()
    database.attach(outbox)
    await spend(database, 100)
    row = await wake(database, session_id)
    assert (row.state, row.not_before) == (TurnState.QUEUED, await midnight(database))
    assert [(work.id, work.not_before) for work in outbox.enqueued] == [(row.id, row.not_before)]


async def test_the_end_of_other_tasks_does_not_hurry_it(database: Database, session_id: SessionId) -> None:
    """H2: it does not wait for company."""
    await spend(database, 100)
    row = await wake(database, session_id)
    await do(database, lambda unit: turn_start.hurry(under(LIMITS, unit), unit.lock(session_id)))
    assert (await last_turn(database, session_id)).not_before == row.not_before is not None


async def test_a_turn_that_waited_for_a_place_is_looked_at_when_it_gets_one(database: Database) -> None:
    """H2: it was accepted below the limit, so it is not refused: it waits for the next day."""
    first, second = await new_session(database), await new_session(database)
    turn_id = await start(database, first)
    waiting = await start(database, second)
    claim = await do(database, lambda unit: turn.claim(under(LIMITS, unit), turn_id, WORKER))
    assert claim is not None
    await spend(database, 100)
    outbox = Outbox()
    database.attach(outbox)
    await do(database, lambda unit: turn.end(under(LIMITS, unit), claim, TurnState.COMPLETED, {}, values={}))
    row = await last_turn(database, second)
    assert (row.id, row.is_admitted, row.not_before) == (waiting, True, await midnight(database))
    assert [(work.id, work.not_before) for work in outbox.enqueued] == [(waiting, row.not_before)]


async def test_a_turn_is_looked_at_once_more_when_a_worker_takes_it(database: Database, session_id: SessionId) -> None:
    """H2: between the two, other turns may have spent what was left. One that has begun is not stopped."""
    turn_id = await start(database, session_id)
    await spend(database, 100)
    outbox = Outbox()
    database.attach(outbox)
    assert await do(database, lambda unit: turn.claim(under(LIMITS, unit), turn_id, WORKER)) is None
    row = await last_turn(database, session_id)
    assert (row.state, row.not_before) == (TurnState.QUEUED, await midnight(database))
    assert [(work.id, work.not_before) for work in outbox.enqueued] == [(turn_id, row.not_before)]

    claim = await do(database, lambda unit: turn.claim(under(Limits(daily_cost=101), unit), turn_id, WORKER))
    assert claim is not None
    await do(database, lambda unit: turn.requeue(unit, claimed(unit, turn_id), has_crashed=True))
    again = await do(database, lambda unit: turn.claim(under(LIMITS, unit), turn_id, WORKER))
    assert again is not None
    assert again.fence.attempt == 2


def claimed(unit: Unit, turn_id: TurnId) -> TurnRow:
    row = turns.get(unit.connection, turn_id)
    assert row is not None
    return row
