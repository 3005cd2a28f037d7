"""Stop: within a second, keeping what was said, settling open calls truthfully, holding what waits."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from pydantic_ai import Tool, ToolReturn
from pydantic_ai.messages import BinaryContent, ModelResponse

from outlast import TurnContext, hints
from outlast.testing import ScriptedModel, call, gate, text, texts_seen
from tests.support.logs.histories import outline, return_of
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import BUDGET, task_that
from tests.support.turns.runtime import Runtime, event_types, scripted, wait_for_event, wake
from tests.support.turns.stopping import goes_on, going_on, stop

WITHIN = 1.0
"""Seconds a stop may take, by D5."""


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


async def test_stop_while_the_deps_open(runtime: Runtime) -> None:
    """D5, P6: what hangs there is cancelled and left, and the turn after it opens its own."""
    here, opened, left = Checkpoint(), list[int](), list[int]()

    @asynccontextmanager
    async def deps(context: TurnContext) -> AsyncGenerator[None]:
        try:
            if not opened:
                opened.append(1)
                await here()
            yield None
        finally:
            left.append(1)

    async with runtime(going_on(), deps=deps) as outlast:
        session = await outlast.sessions.create()
        await session.send("Think hard.")
        await here.reached()
        assert (await stop(session)).text == ""
        assert left == [1]
        await goes_on(session)


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


async def test_a_call_that_only_reads_has_no_effects_when_it_is_stopped(runtime: Runtime) -> None:
    """P5: what the model is told of it is true."""
    here = Checkpoint()

    async def look() -> str:
        await here()
        return "seen"

    tools = [Tool(look, metadata=hints(read_only=True))]
    async with runtime(going_on(call("look", call_id="c1")), tools=tools) as outlast:
        session = await outlast.sessions.create()
        await session.send("Look.")
        await here.reached()
        await stop(session)
        told = str(return_of("c1", await session.history()).content)
        assert "run again without harm" in told
        assert "effects" not in told


async def test_a_tool_that_ends_in_an_odd_value_when_it_is_cancelled(runtime: Runtime) -> None:
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
        told = return_of("c1", await session.history())
        assert told.outcome == "success"
        assert "object" in str(told.content)
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
        assert not (await session.refresh()).is_held
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


@pytest.mark.parametrize("by", ["resume", "send"])
async def test_stop_while_only_background_work_is_open_holds_the_session(runtime: Runtime, by: str) -> None:
    """D5, B7: the task goes on, its end starts no turn, and the owner's next word brings the news."""
    here = Checkpoint()

    async def survey() -> str:
        await here()
        return "2.4 m"

    model = scripted(call("survey"), "It goes on.", "It is 2.4 m.")
    async with runtime(model, tools=[survey], budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Go.")).outcome()
        assert await session.stop() is None, "no turn ran"
        assert (await session.refresh()).state == "held"
        here.open()
        task = await task_that(session, lambda task: task.is_over)
        assert task.state == "succeeded", "it was not asked to cancel"
        assert (await session.refresh()).state == "held"
        types = await event_types(session)
        assert types.count("turn.queued") == 1
        assert types.index("session.held") < types.index("task.ended")
        turn = await session.resume() if by == "resume" else await (await session.send("Well?")).turn()
        assert turn is not None
        assert (await turn.outcome()).text == "It is 2.4 m."


async def test_stop_with_cascade_while_only_background_work_is_open(runtime: Runtime) -> None:
    """D5, B6: held and asked to cancel in one commit."""
    here = Checkpoint()

    async def survey() -> str:
        await here()
        return "2.4 m"

    async with runtime(scripted(call("survey"), "It goes on."), tools=[survey], budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Go.")).outcome()
        assert await session.stop(cascade=True) is None
        task = await task_that(session, lambda task: task.is_over)
        assert task.state == "canceled"
        assert (await session.refresh()).state == "held"
        assert (await event_types(session)).count("turn.queued") == 1
