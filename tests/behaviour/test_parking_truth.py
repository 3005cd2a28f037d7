"""What is said of a parked call is so: how long it ran, why it was parked, and that it goes on."""

import asyncio
import re
from datetime import timedelta
from typing import Any

from pydantic_ai import Tool

from outlast import hints
from outlast.testing import call
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import BUDGET, handle_of, only_task, parked, task_that, wakes_seen
from tests.support.turns.runtime import Runtime, events_of, scripted

MINUTE = timedelta(minutes=1)


async def test_a_call_parked_for_a_message_says_so_and_how_long_it_ran(runtime: Runtime) -> None:
    """A4: not the budget that it was far from."""
    here = Checkpoint()

    async def survey() -> str:
        await here()
        return "2.4 m"

    model = scripted(call("survey", call_id="c1"), "I heard you.", "It is 2.4 m.")
    async with runtime(model, tools=[survey], budget=MINUTE, steer_parks_after=BUDGET) as outlast:
        session = await outlast.sessions.create()
        await session.send("How high is the river?")
        await here.reached()
        await session.send("Hurry.")
        await parked(session)
        handle = await _handle(session)
        assert (handle["reason"], handle["budget_seconds"]) == ("steering", 60)
        assert 0.02 <= handle["ran_seconds"] < 60
        assert "new message" in handle["message"]
        assert "60 s" not in handle["message"]
        task = await only_task(session)
        assert task.parked == {"reason": "steering", "ran_seconds": handle["ran_seconds"]}
        here.open()
        await session.settled()
        (wake,) = await wakes_seen(session)
        assert "new message" in wake
        assert "60 s" not in wake


async def test_a_call_past_its_budget_says_that(runtime: Runtime) -> None:
    """A4, B1."""
    here = Checkpoint()

    async def survey() -> str:
        await here()
        return "2.4 m"

    model = scripted(call("survey", call_id="c1"), "It goes on.", "It is 2.4 m.")
    async with runtime(model, tools=[survey], budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        outcome = await (await session.send("How high is the river?")).outcome()
        handle = await handle_of(session, "c1")
        assert (handle["reason"], handle["budget_seconds"]) == ("budget", 0.02)
        assert handle["ran_seconds"] >= 0.02
        assert "budget" in handle["message"]
        assert [each.outcome for each in outcome.calls] == ["parked"]
        (ended,) = await events_of(session, "call.ended")
        assert (ended.data["outcome"], ended.data["task_id"]) == ("parked", handle["task_id"])
        here.open()
        await session.settled()
        (wake,) = await wakes_seen(session)
        assert "past its budget" in wake


async def test_a_call_that_did_not_confirm_its_stop_counts_from_its_start(runtime: Runtime) -> None:
    """A5: its task says why it is one, and its time is the call's, not that of the task's row."""
    here, stubborn = Checkpoint(), Checkpoint()

    async def survey() -> str:
        try:
            await here()
        except asyncio.CancelledError:
            await stubborn()
        return "2.4 m"

    async with runtime(scripted(call("survey", call_id="c1")), tools=[survey], abandon_after=MINUTE) as outlast:
        session = await outlast.sessions.create()
        await session.send("Go.")
        await here.reached()
        await session.stop()
        task = await only_task(session)
        assert task.parked is not None
        assert task.parked["reason"] == "stop"
        assert task.parked["ran_seconds"] >= 0.04, "it was given the grace before it became a task"
        assert task.started_at is not None
        assert (task.created_at - task.started_at).total_seconds() >= 0.04
        (ended,) = await events_of(session, "call.ended")
        assert (ended.data["outcome"], ended.data["task_id"]) == ("interrupted", task.id)
        stubborn.open()
        await task_that(session, lambda task: task.is_over)


async def test_every_view_says_the_same_duration(runtime: Runtime) -> None:
    """A4: task, event and wake take it from one place: the start of the call to the end of its task."""
    here = Checkpoint()

    async def survey() -> str:
        await here()
        return "2.4 m"

    model = scripted(call("survey", call_id="c1"), "It goes on.", "It is 2.4 m.")
    async with runtime(model, tools=[Tool(survey, metadata=hints(budget=0.2))]) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("How high is the river?")).outcome()
        here.open()
        await session.settled()
        task = await only_task(session)
        assert task.started_at is not None
        assert task.ended_at is not None
        ran = (task.ended_at - task.started_at).total_seconds()
        assert ran >= 0.2
        assert task.ran_seconds == ran
        (ended,) = await events_of(session, "task.ended")
        assert ended.data["task"]["ran_seconds"] == ran
        assert ended.data["task"]["started_at"] == task.started_at.isoformat()
        (wake,) = await wakes_seen(session)
        said = re.search(r"finished after (\S+) s", wake)
        assert said is not None
        assert float(said[1]) == round(ran, 1)


async def _handle(session: Any) -> dict[str, Any]:
    async with session.events() as stream:
        async for event in stream:
            if event.type == "call.ended":
                return event.data["part"]["content"]
    raise AssertionError("the call never ended")
