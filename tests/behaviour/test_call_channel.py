"""What a call says while it runs: progress, output, files, secrets; within its budget, parked, and its deadlines."""

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Tool

import outlast as public
from outlast import hints
from outlast.testing import call
from outlast.wire.task_state import TaskState
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import (
    BUDGET,
    PATIENCE,
    ThreadGate,
    only_task,
    parked_session,
    task_that,
    wakes_seen,
    woken_turns,
)
from tests.support.turns.runtime import Runtime, events_of, scripted

KEY = "sk-live-4711"
LONG = timedelta(seconds=30)


def steps() -> list[Any]:
    return [call("survey", call_id="c1"), "It goes on.", "I see."]


Said = dict[str, Any]


def speak(said: Said) -> None:
    said["key"] = public.idempotency_key()
    public.secret(KEY)
    public.output(f"the key is {KEY}\n")
    public.progress(3, 3, unit="rivers", label=f"with {KEY}")
    said["artifact"] = public.artifact("map.txt", b"the Elbe", "text/plain")


def async_tool(here: Checkpoint | None, said: Said) -> Callable[[], Any]:
    async def survey() -> str:
        if here is not None:
            await here()
        speak(said)
        return f"measured with {KEY}"

    return survey


def sync_tool(here: ThreadGate | None, said: Said) -> Callable[[], Any]:
    def survey() -> str:
        if here is not None:
            here()
        speak(said)
        return f"measured with {KEY}"

    return survey


@pytest.mark.parametrize("is_sync", [False, True])
async def test_a_parked_call_speaks_through_its_task(runtime: Runtime, is_sync: bool) -> None:
    """A3, B4, A11: output, the last progress and files stand in the task; secrets are masked wherever people look."""
    said: Said = {}
    here: Any = ThreadGate() if is_sync else Checkpoint()
    tool = sync_tool(here, said) if is_sync else async_tool(here, said)
    async with runtime(steps(), tools=[tool], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        here.open()
        await session.settled()
        task = await only_task(session)
        assert task.progress == {"current": 3, "total": 3, "unit": "rivers", "label": f"with {'*' * len(KEY)}"}
        assert [(each["id"], each["name"], each["bytes"]) for each in task.artifacts] == [
            (said["artifact"], "map.txt", 8)
        ]
        assert (await outlast.tasks.output(task.id)).text == f"the key is {'*' * len(KEY)}\n"
        assert said["key"]
        assert KEY not in repr(await events_of(session)) + repr(task)
        (wake,) = await wakes_seen(session)
        assert "Files: map.txt" in wake
    stored = [file.read_bytes() for file in runtime.folder.rglob("*") if file.is_file()]
    assert b"the Elbe" in stored


@pytest.mark.parametrize("is_sync", [False, True])
async def test_a_call_within_its_budget_speaks_too(runtime: Runtime, is_sync: bool) -> None:
    """A3, A9, A11: its progress is told, its output is kept and read, without a task."""
    said: Said = {}
    tool = sync_tool(None, said) if is_sync else async_tool(None, said)
    model = scripted(call("survey", call_id="c1"), call("read_output", id="c1", call_id="r1"), "Done.")
    async with runtime(model, tools=[tool]) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Go.")
        (progress,) = await events_of(session, "call.progress")
        assert progress.data["call_id"] == "c1"
        assert progress.data["progress"]["current"] == 3
        assert outcome.calls[1].result["text"] == f"the key is {'*' * len(KEY)}\n"
        assert KEY not in repr(await events_of(session))
        assert await session.tasks() == []


async def test_what_a_call_said_last_is_kept_when_its_runtime_leaves_it(runtime: Runtime) -> None:
    """A3, P1: its last words come after it was told to end, and nothing of them runs on behind the runtime."""
    here = Checkpoint()

    async def survey() -> None:
        public.output("measuring ")
        try:
            await here()
        finally:
            public.output("put the boat away")

    async with runtime(steps(), tools=[survey], budget=BUDGET, drain=timedelta(0)) as outlast:
        _, task = await parked_session(outlast)
    async with runtime(steps(), tools=[survey], budget=BUDGET) as outlast:
        assert (await outlast.tasks.wait(task.id)).state is TaskState.FAILED
        assert (await outlast.tasks.output(task.id)).text == "measuring put the boat away"


async def test_what_a_stopped_call_said_last_is_kept(runtime: Runtime) -> None:
    """A3, P6: Stop ends the code; what it said on its way out can be read."""
    here = Checkpoint()

    async def survey() -> None:
        try:
            await here()
        finally:
            public.output("put the boat away")

    model = scripted(call("survey", call_id="c1"), call("read_output", id="c1", call_id="r1"), "Done.")
    async with runtime(model, tools=[survey]) as outlast:
        session = await outlast.sessions.create()
        turn = await session.send("Go.")
        await here.reached()
        await session.stop()
        assert (await turn.outcome()).state == "stopped"
        outcome = await session.ask("What did it say?")
        assert outcome.calls[0].result["text"] == "put the boat away"


async def test_the_idempotency_key_is_the_same_before_and_after_parking(runtime: Runtime) -> None:
    """A1: it belongs to the call, whatever becomes of it."""
    here = Checkpoint()
    keys: list[str | None] = []

    async def survey() -> None:
        keys.append(public.idempotency_key())
        await here()
        keys.append(public.idempotency_key())

    async with runtime(steps(), tools=[survey], budget=BUDGET) as outlast:
        session, _ = await parked_session(outlast)
        here.open()
        await session.settled()
    assert keys[0] == keys[1] is not None


@pytest.mark.parametrize("is_parked", [False, True])
async def test_progress_is_told_at_most_four_times_a_second(runtime: Runtime, is_parked: bool) -> None:
    """B4: a thousand words of progress, few events; the last one wins."""
    here, begun = Checkpoint(), time.monotonic()

    async def survey() -> None:
        if is_parked:
            await here()
        for number in range(1_000):
            public.progress(number + 1, 1_000)
            await asyncio.sleep(0)

    async with runtime(steps(), tools=[survey], budget=BUDGET if is_parked else LONG) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("Go.")
        await sent.outcome()
        here.open()
        await session.settled()
        if is_parked:
            told = [each for each in await events_of(session, "task.changed") if each.data["task"]["progress"]]
            assert (await only_task(session)).progress == {
                "current": 1_000,
                "total": 1_000,
                "unit": None,
                "label": None,
            }
        else:
            told = await events_of(session, "call.progress")
        assert 1 <= len(told) <= 1 + 4 * (time.monotonic() - begun)
        assert len(told) < 100


async def test_the_tools_own_timeout_counts_while_it_is_parked(runtime: Runtime) -> None:
    """A1, DESIGN part 6: pydantic-ai's `timeout` ends the call, which has failed."""
    here, ended = Checkpoint(), asyncio.Event()

    async def survey() -> None:
        try:
            await here()
        finally:
            ended.set()

    async with runtime(steps(), tools=[Tool(survey, timeout=0.2)], budget=BUDGET) as outlast:
        session, _ = await parked_session(outlast)
        task = await task_that(session, lambda task: task.is_over)
        assert task.state is TaskState.FAILED
        assert task.error is not None
        assert task.error["kind"] == "tool_error"
        assert ended.is_set()
        await session.settled()


async def test_the_timeout_of_a_sync_tool_answers_while_its_thread_goes_on(runtime: Runtime) -> None:
    """A1: as without Outlast: the model is told that it timed out, and nobody can stop the thread."""
    here, ended = ThreadGate(), threading.Event()

    def survey() -> None:
        here()
        ended.set()

    async with runtime(steps(), tools=[Tool(survey, timeout=0.05)], budget=LONG) as outlast:
        session = await outlast.sessions.create()
        try:
            outcome = await session.ask("How high is the Elbe?")
            assert "Timed out" in str(outcome.calls[0].result)
            assert not ended.is_set()
        finally:
            here.open()
    assert ended.wait(PATIENCE)


async def test_a_parked_sync_tool_past_its_timeout_ends_with_its_thread(runtime: Runtime) -> None:
    """A1, P6: the task has failed, and is not told as over while the tool's code still runs."""
    here = ThreadGate()

    def survey() -> str:
        here()
        return "2.4 m"

    async with runtime(steps(), tools=[Tool(survey, timeout=0.2)], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        assert (await outlast.tasks.wait(task.id, seconds=0.3)).state is TaskState.RUNNING
        here.open()
        task = await outlast.tasks.wait(task.id)
        assert task.error is not None
        assert (task.state, task.error["kind"]) == (TaskState.FAILED, "tool_error")
        await session.settled()


@pytest.mark.parametrize("where", ["hint", "setting"])
async def test_a_deadline_ends_a_parked_call_and_stops_its_code(runtime: Runtime, where: str) -> None:
    """DESIGN parts 6 and 7: failed with `timeout`, told once, and the code is cancelled."""
    here, ended = Checkpoint(), asyncio.Event()

    async def survey() -> None:
        try:
            await here()
        finally:
            ended.set()

    # Long enough for the first turn to end before: its wake would be steered into a turn that still runs.
    tool = Tool(survey, metadata=hints(deadline=2)) if where == "hint" else Tool(survey)
    setting = LONG if where == "hint" else timedelta(seconds=2)
    async with runtime(steps(), tools=[tool], budget=BUDGET, call_deadline=setting) as outlast:
        session, task = await parked_session(outlast)
        assert task.deadline_at is not None
        task = await task_that(session, lambda task: task.is_over)
        assert task.error is not None
        assert (task.state, task.error["kind"]) == (TaskState.FAILED, "timeout")
        await ended.wait()
        await session.settled()
        assert await woken_turns(session) == 1
        (wake,) = await wakes_seen(session)
        assert "timeout" in wake


async def test_a_deadline_within_the_budget_fails_the_call(runtime: Runtime) -> None:
    """DESIGN part 6: every call has a deadline, parked or not."""
    here, ended = Checkpoint(), asyncio.Event()

    async def survey() -> None:
        try:
            await here()
        finally:
            ended.set()

    model = scripted(call("survey"), "Too slow.")
    async with runtime(model, tools=[Tool(survey, metadata=hints(deadline=0.05))]) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Go.")
        assert [each.outcome for each in outcome.calls] == ["failed"]
        assert ended.is_set()
        assert await session.tasks() == []


async def test_a_task_without_progress_is_flagged_and_then_ended(runtime: Runtime) -> None:
    """B12: being alive is not enough; output alone is no progress."""
    here, ended = Checkpoint(), asyncio.Event()

    async def survey() -> None:
        public.output("alive")
        try:
            await here()
        finally:
            ended.set()

    tool = Tool(survey, metadata=hints(progress_deadline=0.1))
    async with runtime(steps(), tools=[tool], budget=BUDGET) as outlast:
        session, _ = await parked_session(outlast)
        task = await task_that(session, lambda task: task.is_over)
        assert task.error is not None
        assert (task.state, task.error["kind"]) == (TaskState.FAILED, "no_progress")
        await ended.wait()
        details = [each.data["task"]["detail"] for each in await events_of(session, "task.changed")]
        assert details == ["no progress for 0.1 s"]
        await session.settled()
        assert await woken_turns(session) == 1


async def test_a_task_that_makes_progress_again_is_no_longer_flagged(runtime: Runtime) -> None:
    """B12: the flag is taken back, and the clock starts anew."""
    flagged, here = Checkpoint(), Checkpoint()

    async def survey() -> str:
        await flagged()
        public.progress(1)
        await here()
        return "2.4 m"

    tool = Tool(survey, metadata=hints(progress_deadline=1))
    async with runtime(steps(), tools=[tool], budget=BUDGET) as outlast:
        session, _ = await parked_session(outlast)
        await task_that(session, lambda task: task.detail is not None)
        flagged.open()
        task = await task_that(session, lambda task: task.progress is not None and task.detail is None)
        assert task.state is TaskState.RUNNING
        here.open()
        await session.settled()
        assert (await only_task(session)).result == "2.4 m"
