"""Answering anew: the model sees the conversation as if it had not answered yet; the log keeps everything."""

import asyncio

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

from outlast.errors import Conflict, InvalidInput, NotFound, SessionBusy
from outlast.testing import ScriptedModel, call, error, gate, text
from tests.support.crashes.regenerating_child import answering, run_until
from tests.support.logs.histories import check_history, outline
from tests.support.models.providers import check_providers
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import BUDGET
from tests.support.turns.runtime import Runtime, events_of, scripted, wait_for_event


async def test_the_last_message_is_answered_anew(runtime: Runtime) -> None:
    """D10: the model sees what it saw before its answer; the old answer stays in the log and is marked."""
    model = scripted("One.", "Two.", "Two again.", "Three.")
    async with runtime(model) as outlast:
        session = await outlast.sessions.create()
        await session.ask("1?")
        old = await session.ask("2?")
        turn = await session.regenerate()
        assert (await turn.outcome()).text == "Two again."
        assert outline(model.requests[2].messages) == outline(model.requests[1].messages)
        assert outline(await session.history()) == ["user: 1?", "text: One.", "user: 2?", "text: Two again."]
        assert old.turn_id is not None
        assert (await session.turn(old.turn_id).outcome()).text == "Two."
        queued = (await events_of(session, "turn.queued"))[-1]
        assert (queued.turn_id, queued.data["origin"]) == (turn.id, "regenerate")
        assert queued.data["regenerates"] == old.turn_id
        stored = (await session.messages()).items
        assert [each.superseded_by for each in stored] == [None, None, None, turn.id, None]
        await session.ask("3?")
        assert outline(model.requests[3].messages) == [*outline((await session.history())[:-1])]
        check_history(await session.history())


async def test_calls_of_the_old_answer_are_dropped_with_it(runtime: Runtime) -> None:
    """D10: also when it is done twice; nothing that no provider takes is left."""

    def add(a: int, b: int) -> int:
        return a + b

    steps = [[call("add", a=1, b=n, call_id=f"c{n}"), f"Answer {n}."] for n in range(3)]
    model = scripted(*(each for step in steps for each in step))
    async with runtime(model, tools=[add]) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Add.")
        for n in (1, 2):
            assert (await (await session.regenerate()).outcome()).text == f"Answer {n}."
            assert outline(model.requests[2 * n].messages) == ["user: Add."]
            history = await session.history()
            assert outline(history) == ["user: Add.", "call: add", "return: add (success)", f"text: Answer {n}."]
            check_history(history)
            await check_providers(history)
        assert len(await events_of(session, "call.ended")) == 3


async def test_what_was_said_in_between_stays(runtime: Runtime) -> None:
    """D3, D10: a steering message is the last that was said; what came before it is not done again."""
    here = Checkpoint()

    async def look() -> str:
        await here()
        return "seen"

    model = scripted(call("look"), "Old.", "New.")
    async with runtime(model, tools=[look]) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("Look.")
        await here.reached()
        await session.send("Hurry.")
        here.open()
        await sent.outcome()
        assert (await (await session.regenerate()).outcome()).text == "New."
        history = await session.history()
        said = ["user: Look.", "call: look", "return: look (success)", "user: Hurry.", "text: New."]
        assert outline(history) == said
        await check_providers(history)


async def test_an_answer_can_come_from_another_model(runtime: Runtime) -> None:
    """D15: by default it is the one that answered before."""
    models = {"big": ScriptedModel(lambda _: "big"), "small": ScriptedModel(lambda _: "small")}
    async with runtime(lambda _: "own", models=models) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Who?", model="small")
        assert (await (await session.regenerate()).outcome()).text == "small"
        assert (await (await session.regenerate(model="big")).outcome()).text == "big"
        with pytest.raises(InvalidInput):
            await session.regenerate(model="huge")


async def test_a_history_from_elsewhere_can_be_answered_anew(runtime: Runtime) -> None:
    """D10: imported and forked sessions too."""
    said = [
        ModelRequest(parts=[UserPromptPart(content="1?")]),
        ModelResponse(parts=[TextPart(content="One.")]),
    ]
    async with runtime(scripted("Uno.", "Un.")) as outlast:
        session = await outlast.sessions.create(history=said)
        assert (await (await session.regenerate()).outcome()).text == "Uno."
        fork = await outlast.sessions.fork(session.id)
        assert outline(await fork.history()) == ["user: 1?", "text: Uno."]
        assert (await (await fork.regenerate()).outcome()).text == "Un."
        copy = await outlast.sessions.import_(await session.export())
        assert outline(await copy.history()) == ["user: 1?", "text: Uno."]


async def test_it_is_refused_when_there_is_nothing_or_something_runs(runtime: Runtime) -> None:
    """D10: an empty session has nothing to answer; a busy one is answering."""
    here = Checkpoint()
    async with runtime(scripted([gate(here), text("One.")])) as outlast:
        session = await outlast.sessions.create()
        with pytest.raises(Conflict):
            await session.regenerate()
        sent = await session.send("Go.")
        await here.reached()
        with pytest.raises(SessionBusy):
            await session.regenerate()
        here.open()
        assert (await sent.outcome()).text == "One."
        await outlast.sessions.delete(session.id)
        with pytest.raises(NotFound):
            await session.regenerate()


async def test_of_two_who_ask_at_once_one_is_answered(runtime: Runtime) -> None:
    """P5: the other is told that the session is busy."""
    async with runtime(scripted("Old.", "New.")) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Go.")
        asked = await asyncio.gather(session.regenerate(), session.regenerate(), return_exceptions=True)
        assert sum(isinstance(each, SessionBusy) for each in asked) == 1
        await session.settled()
        assert outline(await session.history()) == ["user: Go.", "text: New."]


async def test_a_stopped_or_failed_answer_can_be_given_anew(runtime: Runtime) -> None:
    """D5, D9: also one that was stopped while it was given anew; a hold ends with it."""
    here = Checkpoint()
    model = scripted("Old.", [text("Half "), gate(here), text("an answer.")], error(400), "Whole.")
    async with runtime(model, model_retries=0) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Go.")
        await session.regenerate()
        await here.reached()
        await wait_for_event(session, "part.delta")
        stopped = await session.stop()
        assert stopped is not None
        assert stopped.state == "stopped"
        assert outline(await session.history()) == ["user: Go.", "text: Half "]
        assert (await (await session.regenerate()).outcome()).state == "failed"
        assert outline(await session.history()) == ["user: Go."]
        assert (await (await session.regenerate()).outcome()).text == "Whole."
        assert outline(await session.history()) == ["user: Go.", "text: Whole."]
        assert (await session.refresh()).state == "idle"


@pytest.mark.parametrize(
    "place", ["commit regenerate after 1", "commit deliver after 1", "commit journal after 1", "commit request after 1"]
)
async def test_a_crash_does_not_bring_the_old_answer_back(embedded: Runtime, place: str) -> None:
    """P1, P2: from the commit on the message is answered anew, and what was done for that is not done twice."""
    await asyncio.to_thread(run_until, embedded.folder, place)
    async with embedded(agent=answering()) as outlast:
        (session,) = await outlast.sessions.list()
        last = await session.settled()
        assert last is not None
        assert (last.state, last.text) == ("completed", "Seen 1.")
        history = await session.history()
        assert outline(history) == ["user: Look.", "call: look", "return: look (success)", "text: Seen 1."]
        check_history(history)


async def test_tasks_of_the_old_answer_go_on(runtime: Runtime) -> None:
    """D10, P3: what they come to is told once, after the new answer."""
    here = Checkpoint()

    async def survey() -> str:
        await here()
        return "3 m"

    model = scripted(call("survey"), "It runs.", "I cannot measure.", "It is 3 m.")
    async with runtime(model, tools=[survey], budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Measure.")).outcome()
        assert (await (await session.regenerate()).outcome()).text == "I cannot measure."
        here.open()
        await session.settled()
        history = await session.history()
        assert outline(history)[-1] == "text: It is 3 m."
        assert [each for each in outline(history) if each.startswith("call")] == []
        check_history(history)
        await check_providers(history)
