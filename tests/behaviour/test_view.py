"""A session as people see it: turns as blocks, what waits, tasks, and the position from which a reader goes on."""

from typing import Any

import pytest
from pydantic_ai.messages import BinaryContent

from outlast import Session
from outlast.errors import NotFound
from outlast.testing import call, gate, text
from outlast.wire.attachment import Attachment
from outlast.wire.view import CallBlock, MessageBlock, NoteBlock, SessionView, TextBlock, TurnView, WakeBlock
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import BUDGET
from tests.support.turns.runtime import Runtime, events_of, scripted, wait_for_event
from tests.support.views.compare import comparable
from tests.support.views.reader import ViewReader


def outline(turn: TurnView) -> list[str]:
    """The blocks in a few words."""
    words: list[str] = []
    for block in [*turn.kept, *turn.blocks]:
        match block:
            case MessageBlock() | TextBlock() | NoteBlock() | WakeBlock():
                words.append(f"{block.type}: {block.text}")
            case CallBlock():
                words.append(f"call: {block.tool} {block.state} {block.outcome}")
            case _:
                words.append(block.type)
    return words


async def view_of(session: Session, **asked: Any) -> SessionView:
    """The server's view, which must be what its events come to."""
    seen = await session.view(**asked)
    if asked:
        return seen
    reader = ViewReader({"as_of": 0, "turns": [], "inbox": [], "tasks": []})
    folded = reader.add_all(each for each in await events_of(session) if (each.number or 0) <= seen.as_of)
    assert comparable(seen) == comparable(folded, like=seen)
    return seen


async def test_an_answer_is_seen_while_it_is_said(runtime: Runtime) -> None:
    """K6: the running turn is among the turns, with the words so far; `as_of` is where a reader goes on."""
    here = Checkpoint()
    async with runtime(scripted([text("One "), gate(here), text("two.")])) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("Count.", idempotency_key="m1")
        await here.reached()
        await wait_for_event(session, "part.delta")
        [turn] = (await view_of(session)).turns
        assert (turn.id, turn.state, turn.text) == (sent.turn_id, "running", "One ")
        said, words = turn.blocks
        assert isinstance(said, MessageBlock)
        assert isinstance(words, TextBlock)
        assert (said.text, said.key, words.is_open) == ("Count.", "m1", True)
        here.open()
        await sent.outcome()
        [turn] = (await view_of(session)).turns
        assert (turn.state, turn.text, turn.output) == ("completed", "One two.", "One two.")
        assert outline(turn) == ["message: Count.", "text: One two."]
        assert turn.usage.requests == 1
        assert turn.queued_at is not None
        assert turn.started_at is not None
        assert turn.ended_at is not None


async def test_steering_stands_where_the_model_was_given_it(runtime: Runtime) -> None:
    """D3, K6: before that it waits, whole, with its key and its files."""
    here = Checkpoint()

    async def look() -> str:
        await here()
        return "seen"

    async with runtime(scripted([text("Let me see."), call("look", call_id="c1")], "All."), tools=[look]) as outlast:
        session = await outlast.sessions.create()
        await session.send("Look.")
        await here.reached()
        await wait_for_event(session, "call.started")
        long = "Also this. " * 1_000
        await session.send(long, idempotency_key="m2", files=[Attachment("a.txt", b"abc", "text/plain")])
        seen = await view_of(session)
        [waiting] = seen.inbox
        assert (waiting.text, waiting.key, waiting.kind, waiting.mode) == (long, "m2", "message", "steer")
        assert [(each.name, each.bytes) for each in waiting.files] == [("a.txt", 3)]
        [_, _, running] = seen.turns[0].blocks
        assert isinstance(running, CallBlock)
        assert (running.state, running.args, running.ended_at) == ("running", {}, None)
        assert running.started_at is not None
        here.open()
        await session.settled()
        seen = await view_of(session)
        assert seen.inbox == []
        assert outline(seen.turns[0]) == [
            *("message: Look.", "text: Let me see.", "call: look ended success"),
            *(f"message: {long}", "text: All."),
        ]
        said = seen.turns[0].blocks[3]
        assert isinstance(said, MessageBlock)
        assert [each.name for each in said.files] == ["a.txt"]


async def test_a_parked_call_its_task_and_its_wake(runtime: Runtime) -> None:
    """K6, A6: the call says that it goes on as a task; the wake says of which task it tells."""
    here = Checkpoint()

    async def survey() -> str:
        await here()
        return "three metres"

    model = scripted(call("survey", call_id="c1"), "It runs.", "Three metres.")
    async with runtime(model, tools=[survey], budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        first = await (await session.send("How deep?")).outcome()
        assert first.text == "It runs."
        seen = await view_of(session)
        [task] = seen.tasks
        parked = seen.turns[0].blocks[1]
        assert isinstance(parked, CallBlock)
        assert (parked.outcome, parked.task_id, task["state"]) == ("parked", task["id"], "running")
        here.open()
        await session.settled()
        seen = await view_of(session)
        wake = seen.turns[1].blocks[0]
        assert isinstance(wake, WakeBlock)
        assert wake.task_ids == [task["id"]]
        assert "three metres" in wake.text
        assert [each["state"] for each in seen.tasks] == ["succeeded"]


async def test_a_turn_that_is_made_again_stands_in_place_of_the_other(runtime: Runtime) -> None:
    """D10, K6: what was said to the model stays before its blocks; pages count it once."""
    async with runtime(scripted("One.", "Two.", "Two again.", "And again.", "Three.")) as outlast:
        session = await outlast.sessions.create()
        await session.ask("1?")
        old = await session.ask("2?")
        await (await session.regenerate()).outcome()
        again = await (await session.regenerate()).outcome()
        seen = await view_of(session)
        assert [outline(each) for each in seen.turns] == [
            ["message: 1?", "text: One."],
            ["message: 2?", "text: And again."],
        ]
        assert seen.turns[1].id == again.turn_id != old.turn_id
        await session.ask("3?")
        assert len((await view_of(session)).turns) == 3
        last = await view_of(session, turns=1)
        assert [outline(each) for each in last.turns] == [["message: 3?", "text: Three."]]
        middle = await view_of(session, turns=1, before=last.next)
        assert [outline(each) for each in middle.turns] == [["message: 2?", "text: And again."]]
        first = await view_of(session, turns=1, before=middle.next)
        assert [outline(each) for each in first.turns] == [["message: 1?", "text: One."]]
        assert first.next is None
        with pytest.raises(NotFound):
            await session.view(before="trn_unknown")


async def test_a_stop_and_what_it_kept(runtime: Runtime) -> None:
    """A13, K6: how a turn ended, and a message that waits for the next one."""
    here = Checkpoint()
    async with runtime(scripted([text("One "), gate(here), text("two.")])) as outlast:
        session = await outlast.sessions.create()
        await session.send("Count.")
        await here.reached()
        await session.send("And then?", when_busy="queue")
        await session.stop()
        seen = await view_of(session)
        [turn] = seen.turns
        assert (turn.state, turn.stop_reason, turn.text) == ("stopped", "user", "One ")
        assert (seen.session.state, [each.text for each in seen.inbox]) == ("held", ["And then?"])
        await session.edit_input(seen.inbox[0].input_id, "And after that?")
        assert [each.text for each in (await view_of(session)).inbox] == ["And after that?"]
        await session.remove_input(seen.inbox[0].input_id)
        assert (await view_of(session)).inbox == []


async def test_a_word_about_a_call_of_unknown_effect(runtime: Runtime) -> None:
    """B8, K6: what a person said stands at the call, in the log too, and as a note where the model was given it."""
    here = Checkpoint()

    async def charge() -> str:
        await here()
        return "charged"

    async with runtime(scripted(call("charge", call_id="c1"), "Good to know."), tools=[charge]) as outlast:
        session = await outlast.sessions.create()
        await session.send("Pay.")
        await here.reached()
        await session.stop()
        [before] = (await view_of(session)).turns
        assert (before.stop_reason, outline(before)[1]) == ("user", "call: charge ended interrupted")
        await session.settle_call("c1", "worked", by="ada", note="I saw it.")
        await session.settled()
        [event] = await events_of(session, "call.settled")
        assert (event.turn_id, event.data["verdict"], event.data["by"]) == (before.id, "worked", "ada")
        seen = await view_of(session)
        paid, told = seen.turns[0].blocks[1], seen.turns[1].blocks[0]
        assert isinstance(paid, CallBlock)
        assert paid.settled is not None
        assert (paid.settled.verdict, paid.settled.by, paid.settled.note) == ("worked", "ada", "I saw it.")
        assert isinstance(told, NoteBlock)
        assert told.kind == "settled"


async def test_an_image_that_a_tool_gives(runtime: Runtime) -> None:
    """B7, K6: the call names the file that it made."""

    def draw() -> BinaryContent:
        return BinaryContent(b"\x89PNG", media_type="image/png")

    async with runtime(scripted(call("draw", call_id="c1"), "Here."), tools=[draw]) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Draw.")
        drawn = (await view_of(session)).turns[0].blocks[1]
        assert isinstance(drawn, CallBlock)
        assert [(each.media_type, each.bytes) for each in drawn.files] == [("image/png", 4)]
