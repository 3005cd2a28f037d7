"""Cancelling background work: it reaches the code, and the answer is what really happened."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

import outlast as public
from outlast import Outlast, Session, Task
from outlast.errors import Conflict, InvalidInput, NotFound
from outlast.ids import TaskId
from outlast.store.repositories import tasks
from outlast.testing import call, gate
from outlast.wire.task_state import TaskState
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import (
    BUDGET,
    ThreadGate,
    only_task,
    parked_session,
    task_that,
    wakes_seen,
    woken_turns,
)
from tests.support.turns.runtime import Runtime, events_of, scripted, wait_for_event

LONG = timedelta(seconds=30)


def steps() -> list[Any]:
    return [call("dig", call_id="c1"), "It goes on.", "I see."]


async def asked_at(outlast: Outlast[Any, Any], task_id: str) -> datetime:
    """When the cancel was asked for, as it is stored."""
    found = await outlast.database.read(lambda connection: tasks.get(connection, TaskId(task_id)))
    assert found is not None
    assert found.cancel_requested_at is not None
    return found.cancel_requested_at


async def late_outcome(session: Session) -> Task:
    """The session's task, once it has a late outcome: no event tells of one."""
    while True:
        task = await only_task(session)
        if task.late_outcome is not None:
            return task


async def test_cancel_reaches_an_async_tool(runtime: Runtime) -> None:
    """P6, B6: the code is stopped, the answer says canceled, and the session is told once."""
    here, cleaned_up = Checkpoint(), asyncio.Event()

    async def dig() -> None:
        try:
            await here()
        finally:
            cleaned_up.set()

    async with runtime(steps(), tools=[dig], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        task = await outlast.tasks.cancel(task.id)
        assert task.state is TaskState.CANCELED
        assert cleaned_up.is_set()
        assert task.is_cancel_requested
        await session.settled()
        (wake,) = await wakes_seen(session)
        assert "was canceled" in wake
        assert len(await events_of(session, "task.ended")) == 1


async def test_cancel_waits_for_a_tool_that_cleans_up(runtime: Runtime) -> None:
    """P6, B6: asked twice or not, it is told once to its code, and it is canceled only when it says so."""
    here, cleaning = Checkpoint(), Checkpoint()
    told: list[str] = []

    async def dig() -> None:
        try:
            await here()
        except asyncio.CancelledError:
            told.append("dig")
            await cleaning()
            raise

    async with runtime(steps(), tools=[dig], budget=BUDGET, abandon_after=LONG) as outlast:
        session, task = await parked_session(outlast)
        early = await outlast.tasks.cancel(task.id, wait=0)
        assert (early.state, early.is_cancel_requested) == (TaskState.RUNNING, True)
        first = await asked_at(outlast, task.id)
        await cleaning.reached()
        again = await outlast.tasks.cancel(task.id, wait=0)
        assert (again.state, again.is_cancel_requested) == (TaskState.RUNNING, True)
        assert await asked_at(outlast, task.id) == first
        cleaning.open()
        assert (await outlast.tasks.wait(task.id)).state is TaskState.CANCELED
        assert told == ["dig"]
        assert (await outlast.tasks.cancel(task.id)).state is TaskState.CANCELED, "asking again changes nothing"
        await session.settled()


async def test_a_tool_that_swallows_its_cancel_is_abandoned_and_its_late_outcome_kept(runtime: Runtime) -> None:
    """B6, P3, P5: reported after the grace; what it reaches later is shown and wakes nobody."""
    here, stubborn = Checkpoint(), Checkpoint()

    async def dig() -> str:
        try:
            await here()
        except asyncio.CancelledError:
            await stubborn()
        return "a hole"

    async with runtime(steps(), tools=[dig], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        task = await outlast.tasks.cancel(task.id)
        assert task.state is TaskState.FAILED
        assert task.error is not None
        assert task.error["kind"] == "abandoned"
        await session.settled()
        stubborn.open()
        task = await late_outcome(session)
        assert task.late_outcome is not None
        assert (task.state, task.late_outcome["state"]) == (TaskState.FAILED, "succeeded")
        assert task.late_outcome["result"] == "a hole"
        told = (await events_of(session, "task.changed"))[-1].data["task"]
        assert told["late_outcome"] == {"state": "succeeded", "result_preview": "a hole"}
        await session.settled()
        assert await woken_turns(session) == 1


async def test_a_sync_tool_is_asked_and_its_truth_comes_later(runtime: Runtime) -> None:
    """B6, P6: a thread cannot be killed; a task asked to cancel may still succeed, and then that is the truth."""
    here = ThreadGate()

    def dig() -> str:
        here()
        return "a hole"

    async with runtime(steps(), tools=[dig], budget=BUDGET, abandon_after=LONG) as outlast:
        session, task = await parked_session(outlast)
        task = await outlast.tasks.cancel(task.id, wait=0.05)
        assert (task.state, task.is_cancel_requested) == (TaskState.RUNNING, True)
        here.open()
        task = await outlast.tasks.wait(task.id)
        assert (task.state, task.result) == (TaskState.SUCCEEDED, "a hole")
        await session.settled()


async def test_a_thread_that_goes_on_does_not_keep_the_runtime_open(runtime: Runtime) -> None:
    """P6: closing is bounded; what a thread was doing is told at the next start."""
    here = ThreadGate()

    def dig() -> str:
        here()
        return "a hole"

    try:
        async with asyncio.timeout(10):
            async with runtime(steps(), tools=[dig], budget=BUDGET, abandon_after=LONG) as outlast:
                session, task = await parked_session(outlast)
                await outlast.tasks.cancel(task.id, wait=0)
    finally:
        here.open()
    async with runtime(["I see."], tools=[dig]) as outlast:
        task = await outlast.tasks.wait(task.id)
        assert task.error is not None
        assert (task.state, task.error["kind"]) == (TaskState.FAILED, "interrupted")
        await (await outlast.sessions.get(session.id)).settled()


async def test_output_of_a_call_that_did_not_confirm_its_stop_is_kept(runtime: Runtime) -> None:
    """A5, A3: it goes on as a silent task, and so does what it says."""
    here = ThreadGate()

    def dig() -> str:
        public.output("before ")
        here()
        public.output("and after")
        return "a hole"

    async with runtime(steps(), tools=[dig], abandon_after=LONG) as outlast:
        session = await outlast.sessions.create()
        await session.send("Dig.")
        await here.reached()
        await session.stop()
        task = await only_task(session)
        here.open()
        await wait_for_event(session, "task.ended")
        assert (await outlast.tasks.output(task.id)).text == "before and after"


async def test_tasks_are_listed_followed_and_read(runtime: Runtime) -> None:
    """B4, B6: newest first, a page at a time; output while it runs and after."""
    gates = [Checkpoint(), Checkpoint()]

    async def dig(number: int) -> str:
        public.output(f"hole {number} ")
        await gates[number]()
        public.output("is deep")
        return str(number)

    model = scripted([call("dig", number=0), call("dig", number=1)], "Both go on.", "One.", "Two.")
    async with runtime(model, tools=[dig], budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Dig.")).outcome()
        newer, older = await outlast.tasks.list(session_id=session.id)
        assert newer.id > older.id
        assert [each.id for each in await outlast.tasks.list(before=newer.id)] == [older.id]
        assert [each.id for each in await outlast.tasks.list(limit=1)] == [newer.id]
        assert {each.id for each in await outlast.tasks.list(state="open")} == {newer.id, older.id}
        number = older.args
        following = outlast.tasks.follow(older.id)
        first = await anext(following)
        assert first.text.startswith("hole ")
        for each in gates:
            each.open()
        rest = "".join([piece.text async for piece in following])
        assert rest == "is deep", number
        assert (await outlast.tasks.wait(newer.id)).is_over
        assert (await outlast.tasks.output(older.id, offset=5, length=4)).text == f"{first.text[5]} is"
        await session.settled()
        assert await outlast.tasks.list(state="open") == []


async def test_another_owners_task_is_not_there(runtime: Runtime) -> None:
    """P7, B6: every way to a task answers as for an id that nobody has, and nothing happens to it."""
    here = Checkpoint()

    async def dig() -> None:
        await here()

    async with runtime(steps(), tools=[dig], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        stranger = outlast.tasks_of("stranger")
        for ask in (stranger.get, stranger.wait, stranger.cancel, stranger.output):
            with pytest.raises(NotFound) as known:
                await ask(task.id)
            with pytest.raises(NotFound) as unknown:
                await ask("task_nobody")
            assert str(known.value) == str(unknown.value)
            assert known.value.code == unknown.value.code
        with pytest.raises(NotFound):
            await anext(stranger.follow(task.id))
        with pytest.raises(NotFound):
            await stranger.settle(task.id, "worked", by="stranger")
        assert await stranger.list() == []
        assert await stranger.list(session_id=session.id) == []
        assert not (await only_task(session)).is_cancel_requested
        here.open()
        await session.settled()


async def test_a_person_settles_a_task_whose_effect_is_unknown(runtime: Runtime) -> None:
    """A2: once; the model is told who said so. What has a known end cannot be settled."""
    here, stubborn = Checkpoint(), Checkpoint()

    async def dig() -> None:
        try:
            await here()
        except asyncio.CancelledError:
            await stubborn()

    async with runtime([*steps(), "Good."], tools=[dig], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        with pytest.raises(Conflict):
            await outlast.tasks.settle(task.id, "worked", by="olga")
        await outlast.tasks.cancel(task.id)
        await session.settled()
        with pytest.raises(InvalidInput):
            await outlast.tasks.settle(task.id, "perhaps", by="olga")
        settled = await outlast.tasks.settle(task.id, "worked", by="olga", note="I saw the hole.")
        assert settled.settled is not None
        assert settled.settled.verdict == "worked"
        with pytest.raises(Conflict):
            await outlast.tasks.settle(task.id, "failed", by="paul")
        outcome = await session.settled()
        assert outcome is not None
        assert outcome.text == "Good."
        history = str(await session.history())
        assert "olga says" in history
        assert "I saw the hole." in history
        stubborn.open()


async def test_a_call_canceled_within_the_budget_leaves_no_task(runtime: Runtime) -> None:
    """A5: Stop cancels it, it confirms, and that is all."""
    here = Checkpoint()

    async def dig() -> None:
        await here()

    async with runtime(steps(), tools=[dig]) as outlast:
        session = await outlast.sessions.create()
        await session.send("Dig.")
        await here.reached()
        await session.stop()
        assert await session.tasks() == []


async def test_stop_leaves_parked_tasks_alone(runtime: Runtime) -> None:
    """D5: parked tasks go on; their wake is held until the owner goes on."""
    here, speaking = Checkpoint(), Checkpoint()

    async def dig() -> str:
        await here()
        return "a hole"

    model = scripted(call("dig"), [gate(speaking), "never"], "I see.")
    async with runtime(model, tools=[dig], budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        await session.send("Dig.")
        await speaking.reached()
        await session.stop()
        assert (await only_task(session)).state is TaskState.RUNNING
        here.open()
        await task_that(session, lambda task: task.state is TaskState.SUCCEEDED)
        assert await woken_turns(session) == 0
        turn = await session.resume()
        assert turn is not None
        assert (await turn.outcome()).text == "I see."
        assert len(await wakes_seen(session)) == 1
