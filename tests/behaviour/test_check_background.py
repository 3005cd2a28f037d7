"""The model's own tools: look at, wait for and cancel background work, and read long results in pieces."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage
from pydantic_core import to_json

import outlast as public
from outlast import Outlast, Settings, hints
from outlast.calls.control.check_background import BackgroundControl
from outlast.calls.control.toolset import INSTRUCTIONS, TOOLS
from outlast.testing import ScriptedModel, call, tool_returns
from outlast.wire.task_state import TaskState
from tests.support.logs.histories import check_history, return_of
from tests.support.models.asking import answer, asks
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import (
    BUDGET,
    ThreadGate,
    nth_event,
    only_task,
    parked_session,
    task_that,
    wakes_seen,
)
from tests.support.turns.background import woken_turns as woken
from tests.support.turns.runtime import FAST, Runtime, scripted

LONG = timedelta(seconds=30)


def survey_until(here: Checkpoint) -> Callable[[], Any]:
    async def survey() -> str:
        public.progress(1, 3, unit="rivers", label="Elbe")
        await here()
        return "2.4 m"

    return survey


async def test_list_and_look_show_what_is_open(runtime: Runtime) -> None:
    """B2: id, tool, title, state, age, progress; waiting 0 seconds is looking."""
    here = Checkpoint()
    model = asks({"list": True}, {}, {"task_id": "$task", "wait_seconds": 0})
    async with runtime(model, tools=[survey_until(here)], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        for _ in range(3):
            await (await session.send("Look.")).outcome()
        listed = await answer(session)
        (entry,) = listed["tasks"]
        assert entry.pop("age_seconds") >= 0
        assert entry == {
            "task_id": task.id,
            "tool": "survey",
            "title": "survey",
            "state": "running",
            "progress": {"current": 1, "total": 3, "unit": "rivers", "label": "Elbe"},
        }
        for call_id in ("q1", "q2"):
            (again,) = (await answer(session, call_id))["tasks"]
            assert (again["task_id"], again["state"]) == (task.id, "running")
        here.open()
        await session.settled()


async def test_waiting_ends_with_the_task_and_its_wake_is_withdrawn(runtime: Runtime) -> None:
    """B2, B7, P3: told by the tool, it is not told again; reading does not consume it."""
    here = Checkpoint()
    wait = {"task_id": "$task", "wait_seconds": 300}
    async with runtime(asks(wait, wait), tools=[survey_until(here)], budget=BUDGET) as outlast:
        session, _ = await parked_session(outlast)
        sent = await session.send("Wait for it.")
        await nth_event(session, "call.started", 2)
        here.open()
        await sent.outcome()
        (entry,) = (await answer(session))["tasks"]
        assert (entry["state"], entry["result"]) == ("succeeded", "2.4 m")
        await session.settled()
        assert (await woken(session), await wakes_seen(session)) == (0, [])
        await (await session.send("Again.")).outcome()
        (entry,) = (await answer(session, "q1"))["tasks"]
        assert entry["result"] == "2.4 m"
        check_history(await session.history())


async def test_waiting_for_several(runtime: Runtime) -> None:
    """B2: until all of them have ended."""
    gates = [Checkpoint(), Checkpoint()]

    async def survey(river: int) -> str:
        await gates[river]()
        return f"river {river}"

    def steps(messages: list[ModelMessage]) -> Any:
        returns: dict[str, Any] = dict(tool_returns(messages))
        if not returns:
            return [call("survey", river=each, call_id=f"c{each}") for each in range(2)]
        if "q0" in returns:
            return "Both."
        return call("check_background", task_id=[returns[f"c{each}"]["task_id"] for each in range(2)], call_id="q0")

    async with runtime(ScriptedModel(steps), tools=[survey], budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("Go.")
        await nth_event(session, "call.started", 3)
        gates[1].open()
        await task_that(session, lambda task: task.is_over)
        gates[0].open()
        assert (await sent.outcome()).text == "Both."
        assert [each["result"] for each in (await answer(session))["tasks"]] == ["river 0", "river 1"]
        await session.settled()
        assert await wakes_seen(session) == []


@pytest.mark.parametrize(("asked", "given"), [(4_000, 300), (300, 300), (2.5, 2.5), (-1, 0)])
async def test_a_wait_is_clamped(runtime: Runtime, monkeypatch: pytest.MonkeyPatch, asked: float, given: float) -> None:
    """B2: larger values than 300 s are 300 s."""
    here = Checkpoint()
    waits: list[float] = []
    check = BackgroundControl.check

    async def checks(self: BackgroundControl, *args: Any, wait_seconds: float, cancel: bool) -> dict[str, Any]:
        waits.append(wait_seconds)
        return await check(self, *args, wait_seconds=0, cancel=cancel)

    monkeypatch.setattr(BackgroundControl, "check", checks)
    model = asks({"task_id": "$task", "wait_seconds": asked})
    async with runtime(model, tools=[survey_until(here)], budget=BUDGET) as outlast:
        session, _ = await parked_session(outlast)
        await (await session.send("Wait for it.")).outcome()
        assert waits == [given]
        here.open()
        await session.settled()


async def test_a_wait_ends_early_when_the_user_speaks(runtime: Runtime) -> None:
    """B2, A4: a control tool never keeps a person waiting."""
    here = Checkpoint()
    model = asks({"task_id": "$task", "wait_seconds": 300})
    async with runtime(model, tools=[survey_until(here)], budget=BUDGET) as outlast:
        session, _ = await parked_session(outlast)
        sent = await session.send("Wait for it.")
        await nth_event(session, "call.started", 2)
        steered = await session.send("What are you doing?")
        assert (await steered.outcome()).state == "completed"
        assert (await steered.turn()).id == (await sent.turn()).id
        (entry,) = (await answer(session))["tasks"]
        assert entry["state"] == "running"
        here.open()
        await session.settled()


async def test_cancel_beats_wait(runtime: Runtime) -> None:
    """B2, B6: the answer is what really happened, and it is told once."""
    here = Checkpoint()
    model = asks({"task_id": "$task", "wait_seconds": 300, "cancel": True})
    async with runtime(model, tools=[survey_until(here)], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        await (await session.send("Stop it.")).outcome()
        (entry,) = (await answer(session))["tasks"]
        assert (entry["task_id"], entry["state"]) == (task.id, "canceled")
        await session.settled()
        assert await wakes_seen(session) == []


async def test_cancel_of_a_finished_task_returns_its_real_outcome(runtime: Runtime) -> None:
    """B2: it finished first, and that is the truth."""
    here = Checkpoint()
    model = asks({"task_id": "$task", "cancel": True})
    async with runtime(model, tools=[survey_until(here)], budget=BUDGET) as outlast:
        session, _ = await parked_session(outlast)
        here.open()
        await session.settled()
        await (await session.send("Stop it.")).outcome()
        (entry,) = (await answer(session))["tasks"]
        assert (entry["state"], entry["result"]) == ("succeeded", "2.4 m")
        assert "cancel" not in entry


async def test_a_cancel_that_is_not_confirmed_says_so(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """B6: a thread cannot be killed; the model hears that it may still finish."""
    monkeypatch.setattr("outlast.calls.control.check_background._CANCEL_SECONDS", 0.05)
    here = ThreadGate()

    def survey() -> str:
        here()
        return "2.4 m"

    model = asks({"task_id": "$task", "cancel": True})
    async with runtime(model, tools=[survey], budget=BUDGET, abandon_after=LONG) as outlast:
        session, _ = await parked_session(outlast)
        await (await session.send("Stop it.")).outcome()
        (entry,) = (await answer(session))["tasks"]
        assert entry["state"] == "running"
        assert "not confirmed" in entry["cancel"]
        here.open()
        await session.settled()
        assert (await only_task(session)).state is TaskState.SUCCEEDED
        assert len(await wakes_seen(session)) == 1


@pytest.mark.parametrize(
    ("arguments", "form"),
    [
        ({"list": True, "task_id": "$task"}, "list=true alone"),
        ({"list": True, "cancel": True}, "list=true alone"),
        ({"cancel": True}, "check_background(task_id=..., cancel=true)"),
        ({"task_id": []}, "at least one task_id"),
    ],
)
async def test_contradictory_arguments_are_refused_with_the_right_form(
    runtime: Runtime, arguments: dict[str, Any], form: str
) -> None:
    """B2: nothing is done, and the model learns how to say it."""
    here = Checkpoint()
    async with runtime(asks(arguments), tools=[survey_until(here)], budget=BUDGET) as outlast:
        session, _ = await parked_session(outlast)
        await (await session.send("Look.")).outcome()
        part = return_of("q0", await session.history())
        assert part.outcome == "failed"
        assert form in str(part.content)
        assert not (await only_task(session)).is_cancel_requested
        here.open()
        await session.settled()


@pytest.mark.parametrize("tool", ["check_background", "read_output"])
@pytest.mark.parametrize("is_cancel", [False, True])
async def test_another_sessions_task_is_not_there(runtime: Runtime, tool: str, is_cancel: bool) -> None:
    """B2, P7: byte for byte the answer of an id that nobody has."""
    here = Checkpoint()
    name = "task_id" if tool == "check_background" else "id"
    extra: dict[str, Any] = {"cancel": True} if is_cancel and tool == "check_background" else {}

    def steps(messages: list[ModelMessage]) -> Any:
        returns: dict[str, Any] = dict(tool_returns(messages))
        said = str(messages[0].parts[-1].content)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
        if said == "Go.":
            return "It goes on." if returns else call("survey", call_id="c1")
        return "Well." if returns else call(tool, {name: said, **extra}, call_id="q0")

    async with runtime(ScriptedModel(steps), tools=[survey_until(here)], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        unknown_id = task.id[:-4] + "zzzz"
        said: list[str] = []
        for asked in (task.id, unknown_id):
            other = await outlast.sessions.create()
            await other.ask(asked)
            part = return_of("q0", await other.history())
            assert part.outcome == "failed"
            said.append(to_json(part.content).decode().replace(asked, "<id>"))
        assert said[0] == said[1]
        assert not (await only_task(session)).is_cancel_requested
        here.open()
        await session.settled()


async def test_a_task_of_an_open_group_is_listed_when_it_has_ended(runtime: Runtime) -> None:
    """B2: unread is unread, also while its wake waits for the others; listed, it is told."""
    gates = [Checkpoint(), Checkpoint()]

    async def survey(river: int) -> str:
        await gates[river]()
        return f"river {river}"

    model = scripted(
        [call("survey", river=each) for each in range(2)],
        "Both go on.",
        call("check_background", list=True, call_id="q0"),
        "One of two.",
        "The other.",
    )
    async with runtime(model, tools=[Tool(survey, metadata=hints(group="rivers"))], budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Go.")).outcome()
        gates[0].open()
        await task_that(session, lambda task: task.is_over)
        await (await session.send("Which?")).outcome()
        states = sorted(each["state"] for each in (await answer(session))["tasks"])
        assert states == ["running", "succeeded"]
        gates[1].open()
        await session.settled()
        (wake,) = await wakes_seen(session)
        assert "river 1" in wake


async def test_outlasts_own_tools_and_words_are_few(runtime: Runtime) -> None:
    """A15, A16: at most 6,000 characters of schema, at most 1,500 of instructions."""
    model = scripted("Hello.")
    async with runtime(model) as outlast:
        await (await outlast.sessions.create()).ask("Hi")
    (request,) = model.requests
    names = {make.__name__ for make in TOOLS}
    own = {name: tool for name, tool in request.tools.items() if name in names}
    assert set(own) == names
    schema = [
        {"name": each.name, "description": each.description, "parameters": each.parameters_json_schema}
        for each in own.values()
    ]
    assert len(to_json(schema)) <= 6_000
    assert len(INSTRUCTIONS) <= 1_500
    assert INSTRUCTIONS in request.instructions


@pytest.mark.parametrize("words", ["Wait for your results.", None])
async def test_the_instructions_are_replaceable(runtime: Runtime, words: str | None) -> None:
    """A16: by other words, or by none."""
    model = scripted("Hello.")
    agent = Agent(model, instructions="Be brief.", name="agent")
    async with Outlast(agent, database=runtime.database, instructions=words, settings=Settings(**FAST)) as outlast:
        await (await outlast.sessions.create()).ask("Hi")
    (request,) = model.requests
    assert INSTRUCTIONS not in request.instructions
    assert request.instructions.split("\n\n") == ["Be brief.", *([words] if words else [])]


async def test_a_turn_that_is_stopped_while_it_waits_tells_the_wake_later(runtime: Runtime) -> None:
    """P3, D5: what the tool did not hand over is still told."""
    here = Checkpoint()
    model = asks({"task_id": "$task", "wait_seconds": 300})
    async with runtime(model, tools=[survey_until(here)], budget=BUDGET) as outlast:
        session, _ = await parked_session(outlast)
        await session.send("Wait for it.")
        await nth_event(session, "call.started", 2)
        await session.stop()
        here.open()
        await task_that(session, lambda task: task.is_over)
        turn = await session.resume()
        assert turn is not None
        await turn.outcome()
        assert len(await wakes_seen(session)) == 1
