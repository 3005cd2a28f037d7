"""A call past its budget goes on in the background: the turn does not wait, and its end wakes the session."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent, Tool
from pydantic_ai.exceptions import ToolFailed

from outlast import hints
from outlast.testing import ScriptedModel, call, delay, gate, tool_returns
from outlast.wire.task_state import TaskState
from tests.support.logs.histories import check_history, return_of
from tests.support.models.providers import check_providers
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import (
    BUDGET,
    ThreadGate,
    handle_of,
    only_task,
    parked,
    parked_session,
    task_that,
    wakes_seen,
    woken_turns,
)
from tests.support.turns.runtime import Runtime, event_types, events_of, scripted, wait_for_event

HOUR = timedelta(hours=1)


def one_call(tool: str = "survey") -> ScriptedModel:
    return scripted(call(tool, call_id="c1"), "It goes on.", "It is 2.4 m.")


def async_survey() -> tuple[Any, Callable[[], None]]:
    here = Checkpoint()

    async def survey() -> str:
        await here()
        return "2.4 m"

    return survey, here.open


def sync_survey() -> tuple[Any, Callable[[], None]]:
    here = ThreadGate()

    def survey() -> str:
        here()
        return "2.4 m"

    return survey, here.open


def nested_survey() -> tuple[Any, Callable[[], None]]:
    here = Checkpoint()
    surveyor = Agent(ScriptedModel([[gate(here), "2.4 m"]]))

    async def survey() -> str:
        return (await surveyor.run("Measure the river.")).output

    return survey, here.open


@pytest.mark.parametrize("kind", [async_survey, sync_survey, nested_survey])
async def test_a_call_past_its_budget_goes_on_and_wakes_the_session(
    runtime: Runtime, kind: Callable[[], tuple[Any, Callable[[], None]]]
) -> None:
    """B1, B7, A4: the model gets a handle at once, the turn ends; the work finishes and is told once."""
    survey, let_go = kind()
    async with runtime(one_call(), tools=[survey], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast, "How high is the river?")
        handle = await handle_of(session, "c1")
        assert set(handle) == {"type", "task_id", "tool", "budget_seconds", "reason", "ran_seconds", "message"}
        assert (handle["type"], handle["tool"], handle["budget_seconds"]) == ("background", "survey", 0.02)
        assert handle["task_id"] == task.id
        assert (task.state, task.call_id, task.attempt, task.kind) == (TaskState.RUNNING, "c1", 1, "call")
        let_go()
        outcome = await session.settled()
        assert outcome is not None
        assert outcome.text == "It is 2.4 m."
        task = await only_task(session)
        assert (task.state, task.result) == (TaskState.SUCCEEDED, "2.4 m")
        (wake,) = await wakes_seen(session)
        assert task.id in wake
        assert "Result: 2.4 m" in wake
        assert await woken_turns(session) == 1
        history = await session.history()
        check_history(history)
        await check_providers(history)
        types = await event_types(session)
        assert types.index("task.created") < types.index("turn.completed") < types.index("task.ended")
        assert types.count("task.ended") == 1


async def test_a_call_within_its_budget_leaves_no_trace_of_parking(runtime: Runtime) -> None:
    """A4, B1: the result, no task row, no extra event."""

    async def survey() -> str:
        return "2.4 m"

    async with runtime(scripted(call("survey", call_id="c1"), "Done."), tools=[survey]) as outlast:
        session = await outlast.sessions.create()
        assert (await session.ask("Go.")).text == "Done."
        assert return_of("c1", await session.history()).content == "2.4 m"
        assert await session.tasks() == []
        assert not [each for each in await event_types(session) if each.startswith("task.")]


async def test_parallel_calls_each_have_their_own_budget(runtime: Runtime) -> None:
    """A4: those past theirs are parked, the others are waited for."""
    slow, patient = Checkpoint(), Checkpoint()

    async def quick() -> str:
        return "quick"

    async def parks() -> str:
        await slow()
        return "slow"

    async def waits() -> str:
        await patient()
        return "patient"

    tools = [
        quick,
        Tool(parks, metadata=hints(budget=0.02)),
        Tool(waits, metadata=hints(budget=None)),
    ]
    model = scripted([call(each, call_id=each) for each in ("quick", "parks", "waits")], "So far.", "All.")
    async with runtime(model, tools=tools, budget=HOUR) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("Go.")
        task = await parked(session)
        assert task.tool == "parks"
        patient.open()
        assert (await sent.outcome()).text == "So far."
        returns = tool_returns(await session.history())
        assert (returns["quick"], returns["waits"]) == ("quick", "patient")
        assert (await handle_of(session, "parks"))["task_id"] == task.id
        slow.open()
        await session.settled()
        assert len(await session.tasks()) == 1


@pytest.mark.parametrize(
    ("setting", "session", "tool", "budget_seconds"),
    [
        (0.02, "unset", "unset", 0.02),
        (3600, 0.03, "unset", 0.03),
        (3600, 3600, 0.04, 0.04),
        (None, None, 0.04, 0.04),
        (None, 0.03, "unset", 0.03),
    ],
)
async def test_the_nearest_budget_counts(
    runtime: Runtime, setting: float | None, session: Any, tool: Any, budget_seconds: float
) -> None:
    """A4: the tool's own hint, else the session's, else the agent's."""
    survey, let_go = async_survey()
    metadata = None if tool == "unset" else hints(budget=tool)
    options: dict[str, Any] = (
        {} if session == "unset" else {"budget": None if session is None else timedelta(seconds=session)}
    )
    budget = None if setting is None else timedelta(seconds=setting)
    async with runtime(one_call(), tools=[Tool(survey, metadata=metadata)], budget=budget) as outlast:
        made, _ = await parked_session(outlast, **options)
        assert (await handle_of(made, "c1"))["budget_seconds"] == budget_seconds
        let_go()
        await made.settled()


@pytest.mark.parametrize("where", ["setting", "session", "tool"])
async def test_without_a_budget_the_turn_waits(runtime: Runtime, where: str) -> None:
    """A4: None is none, whoever says so."""
    here, fast = Checkpoint(), Checkpoint()

    async def survey() -> str:
        await here()
        return "2.4 m"

    async def parks() -> str:
        await fast()
        return "parked"

    tools = [
        Tool(survey, metadata=hints(budget=None) if where == "tool" else None),
        Tool(parks, metadata=hints(budget=0.02)),
    ]
    model = scripted([call("survey", call_id="c1"), call("parks", call_id="c2")], "It is 2.4 m.", "And that.")
    setting = None if where == "setting" else BUDGET
    async with runtime(model, tools=tools, budget=setting) as outlast:
        session = await (outlast.sessions.create(budget=None) if where == "session" else outlast.sessions.create())
        sent = await session.send("Go.")
        assert (await parked(session)).tool == "parks", "so much time has passed that survey would be parked too"
        here.open()
        assert (await sent.outcome()).text == "It is 2.4 m."
        assert return_of("c1", await session.history()).content == "2.4 m"
        fast.open()
        await session.settled()
        assert [each.tool for each in await session.tasks()] == ["parks"]


async def test_a_steering_message_parks_the_running_calls(runtime: Runtime) -> None:
    """A4: a person is heard after `steer_parks_after`, however long the budget."""
    here = Checkpoint()

    async def survey() -> str:
        await here()
        return "2.4 m"

    model = scripted(call("survey", call_id="c1"), "I hear you.", "It is 2.4 m.")
    async with runtime(model, tools=[survey], budget=HOUR, steer_parks_after=BUDGET) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("How high is the river?")
        await here.reached()
        steered = await session.send("And how wide?")
        assert (await steered.outcome()).text == "I hear you."
        assert (await steered.turn()).id == (await sent.turn()).id
        assert (await only_task(session)).tool == "survey"
        here.open()
        await session.settled()
        assert len(await wakes_seen(session)) == 1


async def test_a_message_that_was_heard_parks_no_later_call(runtime: Runtime) -> None:
    """A4: only one that waits presses; a call that begins after its delivery has its whole budget."""
    answering, here, timer = Checkpoint(), Checkpoint(), Checkpoint()

    async def first() -> None:
        await answering()

    async def survey() -> str:
        await here()
        return "2.4 m"

    async def clock() -> None:
        await timer()

    parks = Tool(clock, metadata=hints(budget=0.2))
    model = scripted(call("first"), [call("survey", call_id="c1"), call("clock")], "Both heard.", "Over.")
    async with runtime(
        model, tools=[first, survey, parks], budget=HOUR, steer_parks_after=timedelta(seconds=0.1)
    ) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("Go.")
        await answering.reached()
        await session.send("Be careful.")
        answering.open()
        await here.reached()
        assert (await parked(session)).tool == "clock", "by now the message would have pressed"
        here.open()
        assert (await sent.outcome()).text == "Both heard."
        assert return_of("c1", await session.history()).content == "2.4 m"
        timer.open()
        await session.settled()


async def test_a_message_that_waited_before_the_call_began_parks_it_too(runtime: Runtime) -> None:
    """A4: it came while the model was speaking; the calls of that response do not keep it waiting for long."""
    speaking, here = Checkpoint(), Checkpoint()

    async def survey() -> str:
        await here()
        return "2.4 m"

    model = scripted([gate(speaking), delay(0.08), call("survey", call_id="c1")], "I hear you.", "It is 2.4 m.")
    async with runtime(model, tools=[survey], budget=HOUR, steer_parks_after=BUDGET) as outlast:
        session = await outlast.sessions.create()
        await session.send("How high is the river?")
        await speaking.reached()
        steered = await session.send("And how wide?")
        speaking.open()
        assert (await steered.outcome()).text == "I hear you."
        here.open()
        await session.settled()


async def test_at_the_cap_a_call_is_waited_for_and_says_so(runtime: Runtime) -> None:
    """B5: nothing running is evicted; the turn goes on waiting for the call that found no place."""
    places = [Checkpoint(), Checkpoint()]

    async def survey(number: int) -> str:
        await places[number]()
        return f"river {number}"

    model = scripted(
        call("survey", number=0, call_id="c0"), call("survey", number=1, call_id="c1"), "One of two.", "Both."
    )
    async with runtime(model, tools=[survey], budget=BUDGET, max_open_tasks_per_session=1) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("Go.")
        waiting = await wait_for_event(session, "call.waiting")
        assert waiting.data == {"call_id": "c1", "tool": "survey", "reason": "too_many_open_tasks"}
        assert (await only_task(session)).call_id == "c0"
        places[1].open()
        assert (await sent.outcome()).text == "One of two."
        assert return_of("c1", await session.history()).content == "river 1"
        places[0].open()
        await session.settled()
        assert len(await session.tasks()) == 1


async def test_a_parked_call_that_fails_is_told_as_failed(runtime: Runtime) -> None:
    """A2, B7: a tool error in the tool's own words, never as a success."""
    here = Checkpoint()

    async def survey() -> str:
        await here()
        raise ToolFailed("the river is closed")

    async with runtime(one_call(), tools=[survey], budget=BUDGET) as outlast:
        session, _ = await parked_session(outlast)
        here.open()
        await session.settled()
        task = await only_task(session)
        assert (task.state, task.result) == (TaskState.FAILED, None)
        assert task.error is not None
        assert task.error["kind"] == "tool_error"
        (wake,) = await wakes_seen(session)
        assert "the river is closed" in wake


async def test_a_parked_call_that_breaks_is_an_internal_error(runtime: Runtime) -> None:
    """A2: the model sees one sentence with a reference, nothing of the cause."""
    here = Checkpoint()

    async def survey() -> str:
        await here()
        raise RuntimeError("password=hunter2!!")

    async with runtime(one_call(), tools=[survey], budget=BUDGET) as outlast:
        session, _ = await parked_session(outlast)
        here.open()
        task = await task_that(session, lambda task: task.is_over)
        assert task.error is not None
        assert task.error["kind"] == "internal_error"
        assert "reference" in task.error["message"]
        await session.settled()
        assert "hunter2" not in repr(await session.history()) + repr(await events_of(session))
