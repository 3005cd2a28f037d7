"""Stop: within a second, keeping what was said, settling open calls truthfully, holding what waits."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from pydantic_ai import ToolReturn
from pydantic_ai.messages import BinaryContent, ModelResponse

from outlast import Outcome, Session
from outlast.store.tasks import Task, TaskState, WakePolicy
from outlast.testing import ScriptedModel, call, gate, text, texts_seen
from tests.support.checkpoint import Checkpoint
from tests.support.histories import check_history, outline, return_of
from tests.support.providers import check_providers
from tests.support.runtime import Runtime, event_types, events_of, scripted, wait_for_event, wake

WITHIN = 1.0
"""Seconds a stop may take, by D5."""


async def stop(session: Session) -> Outcome:
    """Stop, and check what holds after every stop."""
    outcome = await session.stop()
    assert outcome is not None
    assert outcome.state == "stopped"
    assert await session.is_held()
    check_history(await session.history())
    assert (await event_types(session)).count("turn.stopped") == 1
    return outcome


async def goes_on(session: Session) -> None:
    """A new message right after Stop works at once, and leaves a history that every provider takes."""
    outcome = await session.ask("Go on.")
    assert (outcome.state, outcome.text) == ("completed", "Going on.")
    assert not await session.is_held()
    history = await session.history()
    check_history(history)
    await check_providers(history)


def going_on(*steps: object) -> ScriptedModel:
    return scripted(*steps, "Going on.")


async def test_stop_during_text_keeps_what_was_said(runtime: Runtime) -> None:
    """D5, P6: the words so far stay, in history and in the outcome."""
    here = Checkpoint()
    async with runtime(going_on([text("Once upon a"), gate(here), text(" never")])) as outlast:
        session = await outlast.sessions.create()
        await session.send("Tell a story.")
        await here.reached()
        outcome = await stop(session)
        assert outcome.text == "Once upon a"
        assert outline(await session.history()) == ["user: Tell a story.", "text: Once upon a"]
        await goes_on(session)


async def test_stop_before_the_first_word(runtime: Runtime) -> None:
    """D5: the message stays in history, and the next one follows it."""
    here = Checkpoint()
    async with runtime(going_on([gate(here), text("never")])) as outlast:
        session = await outlast.sessions.create()
        await session.send("Think hard.")
        await here.reached()
        assert (await stop(session)).text == ""
        await goes_on(session)
        assert texts_seen(await session.history()) == ["Think hard.", "Go on."]


async def test_stop_during_the_arguments_of_a_call(runtime: Runtime) -> None:
    """D5: a call that was not asked for to its end never ran and leaves no orphan."""
    here = Checkpoint()
    runs: list[str] = []

    def write(path: str) -> None:
        runs.append(path)

    model = going_on([text("I write. "), call("write", path="a/long/path", chunk=6, pause=gate(here))])
    async with runtime(model, tools=[write]) as outlast:
        session = await outlast.sessions.create()
        await session.send("Write it.")
        await here.reached()
        assert (await stop(session)).text == "I write. "
        assert outline(await session.history()) == ["user: Write it.", "text: I write. "]
        await goes_on(session)
        assert runs == []


async def test_stop_during_a_tool_cancels_it(runtime: Runtime) -> None:
    """D5, A5, P6: the cancel reaches the tool's own code; the model is told that the call was cancelled."""
    here, cleaned_up = Checkpoint(), asyncio.Event()

    async def dig() -> str:
        try:
            await here()
        finally:
            cleaned_up.set()
        return "a hole"

    async with runtime(going_on(call("dig", call_id="c1")), tools=[dig]) as outlast:
        session = await outlast.sessions.create()
        await session.send("Dig.")
        await here.reached()
        begun = time.monotonic()
        outcome = await stop(session)
        assert time.monotonic() - begun < WITHIN
        assert cleaned_up.is_set()
        assert [each.outcome for each in outcome.calls] == ["interrupted"]
        assert "cancelled before it finished" in str(return_of("c1", await session.history()).content)
        assert await session.tasks() == []
        await goes_on(session)


async def test_stop_with_several_calls_of_which_one_is_done(runtime: Runtime) -> None:
    """D5, P2: the result that is there stays; the others are told truthfully."""
    here, is_done = Checkpoint(), asyncio.Event()

    async def fetch(name: str) -> str:
        if name != "quick":
            await here()
        is_done.set()
        return f"{name} fetched"

    model = going_on(
        [
            call("fetch", name="slow", call_id="c1"),
            call("fetch", name="quick", call_id="c2"),
            call("fetch", name="slower", call_id="c3"),
        ]
    )
    async with runtime(model, tools=[fetch]) as outlast:
        session = await outlast.sessions.create()
        await session.send("Fetch all.")
        await is_done.wait()
        await wait_for_event(session, "call.ended")
        await stop(session)
        history = await session.history()
        assert return_of("c2", history).content == "quick fetched"
        assert [return_of(each, history).outcome for each in ("c1", "c2", "c3")] == [
            "interrupted",
            "success",
            "interrupted",
        ]
        await goes_on(session)


async def test_stop_keeps_pictures_behind_all_results(runtime: Runtime) -> None:
    """D5, A2: no provider takes a word between a step's calls and the last of their results."""
    here = Checkpoint()

    async def wait() -> None:
        await here()

    def draw() -> ToolReturn[str]:
        return ToolReturn("drawn", content=["Look:", BinaryContent(b"\x89PNG", media_type="image/png")])

    model = going_on([call("draw", call_id="c1"), call("wait", call_id="c2")])
    async with runtime(model, tools=[draw, wait]) as outlast:
        session = await outlast.sessions.create()
        await session.send("Draw.")
        await wait_for_event(session, "call.ended")
        await here.reached()
        await stop(session)
        await goes_on(session)


async def test_a_tool_that_finishes_when_it_is_cancelled_is_believed(runtime: Runtime) -> None:
    """P6: the answer is what really happened."""
    here = Checkpoint()

    async def save() -> str:
        try:
            await here()
        except asyncio.CancelledError:
            return "saved after all"
        return "saved"

    async with runtime(going_on(call("save", call_id="c1")), tools=[save]) as outlast:
        session = await outlast.sessions.create()
        await session.send("Save.")
        await here.reached()
        await stop(session)
        part = return_of("c1", await session.history())
        assert (part.outcome, part.content) == ("success", "saved after all")
        await goes_on(session)


async def test_a_tool_that_ends_in_a_value_nobody_can_store_when_it_is_cancelled(runtime: Runtime) -> None:
    """D5, P6: an odd end of a cancelled call does not keep the turn from stopping."""
    here = Checkpoint()

    async def save() -> object:
        try:
            await here()
        except asyncio.CancelledError:
            return object()
        return "saved"

    async with runtime(going_on(call("save", call_id="c1")), tools=[save]) as outlast:
        session = await outlast.sessions.create()
        await session.send("Save.")
        await here.reached()
        await stop(session)
        assert return_of("c1", await session.history()).outcome == "interrupted"
        await goes_on(session)


async def stubborn_session(
    runtime: Runtime,
    ends: Callable[[], Awaitable[str]],
    check: Callable[[Session], Awaitable[None]],
    *,
    abandon_after: timedelta = timedelta(seconds=30),
) -> None:
    """Stop a turn whose tool swallows its cancel and then ends as `ends` says."""
    here = Checkpoint()

    async def grind() -> str:
        try:
            await here()
        except asyncio.CancelledError:
            return await ends()
        return "ground"

    async with runtime(going_on(call("grind", call_id="c1")), tools=[grind], abandon_after=abandon_after) as outlast:
        session = await outlast.sessions.create()
        await session.send("Grind.")
        await here.reached()
        await stop(session)
        (task,) = await session.tasks()
        assert (task.wake, task.call_id) == (WakePolicy.SILENT, "c1")
        assert task.cancel_requested_at is not None
        assert task.id in str(return_of("c1", await session.history()).content)
        await goes_on(session)
        await check(session)


async def test_a_tool_that_swallows_its_cancel_becomes_a_silent_task_that_succeeds(runtime: Runtime) -> None:
    """A5, D5: nothing runs untracked; it may still finish, and then that is the truth. It wakes nobody."""
    release = asyncio.Event()

    async def finishes() -> str:
        await release.wait()
        return "ground anyway"

    async def check(session: Session) -> None:
        before = await event_types(session)
        assert [each.state for each in await session.tasks()] == [TaskState.RUNNING]
        release.set()
        await wait_for_event(session, "task.ended")
        (task,) = await session.tasks()
        assert (task.state, task.result) == (TaskState.SUCCEEDED, "ground anyway")
        assert (await event_types(session)).count("turn.queued") == before.count("turn.queued")

    await stubborn_session(runtime, finishes, check)


async def test_a_tool_that_is_cancelled_late_is_told_as_canceled(runtime: Runtime) -> None:
    """A5: the clean-up took longer than Stop waits."""
    release = asyncio.Event()

    async def gives_up() -> str:
        await release.wait()
        raise asyncio.CancelledError

    async def check(session: Session) -> None:
        release.set()
        await wait_for_event(session, "task.ended")
        (task,) = await session.tasks()
        assert task.state is TaskState.CANCELED

    await stubborn_session(runtime, gives_up, check)


async def test_a_tool_that_fails_late_is_told_as_failed(runtime: Runtime) -> None:
    """A2, A5: a tool that ends in an error has failed."""
    release = asyncio.Event()

    async def breaks() -> str:
        await release.wait()
        raise RuntimeError("the mill broke")

    async def check(session: Session) -> None:
        release.set()
        await wait_for_event(session, "task.ended")
        (task,) = await session.tasks()
        assert task.state is TaskState.FAILED
        assert task.error is not None
        assert task.error["kind"] == "internal_error"

    await stubborn_session(runtime, breaks, check)


async def test_a_tool_that_never_confirms_is_reported_as_abandoned(runtime: Runtime) -> None:
    """A5, B6: after the grace it is said to be abandoned; what it reaches later is kept as the late outcome."""
    release = asyncio.Event()

    async def finishes() -> str:
        await release.wait()
        return "far too late"

    async def check(session: Session) -> None:
        await wait_for_event(session, "task.ended")
        (task,) = await session.tasks()
        assert task.state is TaskState.FAILED
        assert task.error is not None
        assert task.error["kind"] == "abandoned"
        release.set()
        task = await late_end(session)
        assert task.late_outcome is not None
        assert task.late_outcome["result"] == "far too late"
        assert task.state is TaskState.FAILED
        assert len(await events_of(session, "task.ended")) == 1

    await stubborn_session(runtime, finishes, check, abandon_after=timedelta(milliseconds=20))


async def late_end(session: Session) -> Task:
    """The session's task, once it has a late outcome: no event tells of one."""
    while True:
        (task,) = await session.tasks()
        if task.late_outcome is not None:
            return task


@pytest.mark.parametrize("is_failing", [False, True])
async def test_a_sync_tool_in_a_thread_cannot_be_killed_and_is_owned(runtime: Runtime, is_failing: bool) -> None:
    """A5, D5: the turn stops at once; the thread's real end is told by its silent task."""
    release, is_running = threading.Event(), threading.Event()

    def compress() -> str:
        is_running.set()
        release.wait()
        if is_failing:
            raise OSError("disk full")
        return "compressed"

    model = going_on(call("compress", call_id="c1"))
    async with runtime(model, tools=[compress], abandon_after=timedelta(seconds=30)) as outlast:
        session = await outlast.sessions.create()
        await session.send("Compress.")
        await asyncio.to_thread(is_running.wait)
        await stop(session)
        (task,) = await session.tasks()
        assert (task.state, task.wake) == (TaskState.RUNNING, WakePolicy.SILENT)
        assert task.cancel_requested_at is not None
        await goes_on(session)
        release.set()
        await wait_for_event(session, "task.ended")
        (task,) = await session.tasks()
        assert task.state is (TaskState.FAILED if is_failing else TaskState.SUCCEEDED)
        assert task.result == (None if is_failing else "compressed")


async def test_a_sync_tool_that_ends_within_the_grace_needs_no_task(runtime: Runtime) -> None:
    """A5, P6: its result is what happened, and the model is told so."""
    release, is_running = threading.Event(), threading.Event()

    def compress() -> str:
        is_running.set()
        release.wait()
        return "compressed"

    model = going_on(call("compress", call_id="c1"))
    async with runtime(model, tools=[compress], stop_grace=timedelta(seconds=30)) as outlast:
        session = await outlast.sessions.create()
        await session.send("Compress.")
        await asyncio.to_thread(is_running.wait)
        stopping = asyncio.create_task(session.stop())
        await wait_for_event(session, "session.held")
        release.set()
        await stopping
        part = return_of("c1", await session.history())
        assert (part.outcome, part.content) == ("success", "compressed")
        assert await session.tasks() == []
        await goes_on(session)


async def test_stop_at_the_moment_of_a_steering_delivery(runtime: Runtime) -> None:
    """D3, D5: a message that was delivered stands once in history, one that was not still waits."""
    here, next_request = Checkpoint(), Checkpoint()

    async def look() -> str:
        await here()
        return "seen"

    model = going_on(call("look"), [gate(next_request), text("never")])
    async with runtime(model, tools=[look]) as outlast:
        session = await outlast.sessions.create()
        await session.send("Look.")
        await here.reached()
        await session.send("And listen.")
        here.open()
        await next_request.reached()
        await stop(session)
        assert texts_seen(await session.history()) == ["Look.", "And listen."]
        assert await session.inbox() == []
        await goes_on(session)


async def test_stop_holds_what_waits_until_the_owner_resumes(runtime: Runtime) -> None:
    """D5: waiting messages stay visible and editable; nothing starts by itself."""
    here = Checkpoint()
    async with runtime(scripted([gate(here), text("never")], "Two.", "Three.")) as outlast:
        session = await outlast.sessions.create()
        await session.send("one")
        await here.reached()
        second = await session.send("tvo", when_busy="queue")
        await session.send("three", when_busy="queue")
        await stop(session)
        assert [each.text for each in await session.inbox()] == ["tvo", "three"]
        await session.edit_input(second.input.id, "two")
        turn = await session.resume()
        assert turn is not None
        assert (await turn.outcome()).text == "Two."
        await session.settled()
        assert texts_seen(await session.history()) == ["one", "two", "three"]


async def test_a_message_after_stop_ends_the_hold(runtime: Runtime) -> None:
    """D5: the new message first, then what was queued before."""
    here = Checkpoint()
    async with runtime(scripted([gate(here), text("never")], "Now.", "Later.")) as outlast:
        session = await outlast.sessions.create()
        await session.send("one")
        await here.reached()
        queued = await session.send("later", when_busy="queue")
        await stop(session)
        assert (await (await session.send("now")).outcome()).text == "Now."
        assert (await queued.outcome()).text == "Later."


async def test_wakes_are_held_after_stop(runtime: Runtime) -> None:
    """D5, B7: they are kept, start nothing, and come with the next turn."""
    here = Checkpoint()
    async with runtime(scripted([gate(here), text("never")], "Both heard.")) as outlast:
        session = await outlast.sessions.create()
        await session.send("one")
        await here.reached()
        await wake(outlast, session, "the first survey has ended")
        await stop(session)
        await wake(outlast, session, "the second survey has ended")
        assert (await event_types(session)).count("turn.queued") == 1
        turn = await session.resume()
        assert turn is not None
        assert (await turn.outcome()).text == "Both heard."
        seen = texts_seen(await session.history())
        assert [("first survey" in each, "second survey" in each) for each in seen[1:]] == [
            (True, False),
            (False, True),
        ]


async def test_stop_of_an_idle_session_is_nothing(runtime: Runtime) -> None:
    """D5: there is nothing to hold."""
    async with runtime(scripted("Hello.")) as outlast:
        session = await outlast.sessions.create()
        assert await session.stop() is None
        assert not await session.is_held()
        assert (await session.ask("Hi")).text == "Hello."


async def test_stop_of_a_turn_that_waits_for_a_place(runtime: Runtime) -> None:
    """D5, D13: it ends here and now; its message is kept for when the owner goes on."""
    here = Checkpoint()
    model = ScriptedModel(lambda _: [gate(here), text("Done.")])
    async with runtime(model, max_turns_per_owner=1) as outlast:
        busy, waiting = await outlast.sessions.create(), await outlast.sessions.create()
        await busy.send("work")
        await here.reached()
        await waiting.send("wait")
        outcome = await waiting.stop()
        assert outcome is not None
        assert outcome.state == "stopped"
        assert [each.text for each in await waiting.inbox()] == ["wait"]
        here.open()
        turn = await waiting.resume()
        assert turn is not None
        assert (await turn.outcome()).text == "Done."
        await busy.settled()


async def test_two_stops_and_a_stop_of_an_interrupted_turn(runtime: Runtime) -> None:
    """D5: the second stop finds the first one's work; exactly one end is told."""
    here = Checkpoint()

    async def dig() -> None:
        await here()

    async with runtime(going_on(call("dig")), tools=[dig]) as outlast:
        session = await outlast.sessions.create()
        await session.send("Dig.")
        await here.reached()
        ends = await asyncio.gather(session.stop(), session.stop())
        assert {end.state for end in ends if end is not None} == {"stopped"}
        assert (await event_types(session)).count("turn.stopped") == 1
        await goes_on(session)


async def test_usage_of_a_stopped_response_is_kept(runtime: Runtime) -> None:
    """H1: what was said was paid for."""
    here = Checkpoint()
    async with runtime(going_on([text("Once upon a"), gate(here), text(" never")])) as outlast:
        session = await outlast.sessions.create()
        await session.send("Tell a story.")
        await here.reached()
        outcome = await stop(session)
        assert outcome.usage.requests == 1
        assert outcome.usage.output_tokens > 0
        last = (await session.history())[-1]
        assert isinstance(last, ModelResponse)
