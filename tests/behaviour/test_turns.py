"""A turn: one stretch of agent work, from a message to its outcome."""

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ToolOutput
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.usage import RequestUsage

from outlast.errors import InvalidInput, NotFound, SessionBusy
from outlast.testing import ScriptedModel, call, gate, last_user_text, reasoning, reply, text
from tests.support.logs.histories import check_history, outline, return_of
from tests.support.models.providers import check_providers
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.runtime import Runtime, event_types, events_of, scripted, wait_for_event


class Forecast(BaseModel):
    city: str
    degrees: int


def add(a: int, b: int) -> int:
    return a + b


async def test_a_message_starts_a_turn_and_the_turn_has_an_outcome(runtime: Runtime) -> None:
    """D1, D7: text, calls and usage come from one fold of the log."""
    model = scripted(call("add", a=2, b=3, call_id="c1"), "The sum is 5.")
    async with runtime(model, tools=[add]) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("What is 2 + 3?")
        assert outcome.state == "completed"
        assert outcome.text == outcome.output == "The sum is 5."
        assert [(each.tool, each.outcome, each.result) for each in outcome.calls] == [("add", "success", 5)]
        assert outline(await session.history()) == [
            "user: What is 2 + 3?",
            "call: add",
            "return: add (success)",
            "text: The sum is 5.",
        ]
        assert (await event_types(session)).count("turn.completed") == 1
        check_history(await session.history())


async def test_usage_adds_up_and_an_unknown_cost_is_unknown(runtime: Runtime) -> None:
    """D7, H1: tokens of all requests of the turn; a price nobody knows is None, never zero."""
    model = scripted(
        reply(call("add", a=1, b=1), usage=RequestUsage(input_tokens=10, output_tokens=5, cache_read_tokens=4)),
        reply("2", usage=RequestUsage(input_tokens=20, output_tokens=1)),
    )
    async with runtime(model, tools=[add]) as outlast:
        usage = (await (await outlast.sessions.create()).ask("1 + 1?")).usage
        assert (usage.requests, usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (2, 30, 6, 4)
        assert usage.cost_microdollars is None


async def test_an_outcome_has_the_agents_own_output_type(runtime: Runtime) -> None:
    """D7, A1: `output` is validated, also when it is asked for long after the turn."""
    agent = Agent(scripted(call("final_result", city="Oslo", degrees=4)), output_type=Forecast)
    async with runtime(agent=agent) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Oslo?")
        assert outcome.output == Forecast(city="Oslo", degrees=4)
        check_history(await session.history())
    async with runtime(agent=agent) as outlast:
        session = await outlast.sessions.get(session.id)
        assert outcome.turn_id is not None
        assert (await session.turn(outcome.turn_id).outcome()).output == Forecast(city="Oslo", degrees=4)


async def test_output_markers_and_unions_give_an_object_too(runtime: Runtime) -> None:
    """A1: output markers and unions of outputs run like any other."""
    agent = Agent(
        scripted(call("forecast", city="Oslo", degrees=4)), output_type=[ToolOutput(Forecast, name="forecast"), str]
    )
    async with runtime(agent=agent) as outlast:
        outcome = await (await outlast.sessions.create()).ask("Oslo?")
        assert outcome.state == "completed"
        assert outcome.output == Forecast(city="Oslo", degrees=4)


async def test_an_outcome_asked_for_too_early_says_running(runtime: Runtime) -> None:
    """D7: at the time limit it gives what is there so far."""
    here = Checkpoint()
    async with runtime(scripted([text("One. "), gate(here), text("Two.")])) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("Count.")
        await here.reached()
        turn = await sent.turn()
        await wait_for_event(session, "part.delta")
        early = await turn.outcome(wait=0.5)
        assert (early.state, early.text, early.is_over) == ("running", "One. ", False)
        here.open()
        assert (await turn.outcome()).text == "One. Two."


async def test_two_sessions_do_not_see_each_other(runtime: Runtime) -> None:
    """D1: each session has its own history."""
    async with runtime(lambda messages: f"You said: {last_user_text(messages)}") as outlast:
        first, second = await outlast.sessions.create(), await outlast.sessions.create()
        assert (await first.ask("red")).text == "You said: red"
        assert (await second.ask("blue")).text == "You said: blue"
        assert outline(await first.history()) == ["user: red", "text: You said: red"]
        assert [each.id for each in await outlast.sessions.list()] == [second.id, first.id]


async def test_a_session_goes_on_from_a_history_made_elsewhere(runtime: Runtime) -> None:
    """D10: the model sees the given messages before the new one."""
    model = scripted("Yes, Ada.")
    given = [ModelRequest(parts=[UserPromptPart("I am Ada.")]), ModelResponse(parts=[TextPart("Hello Ada.")])]
    async with runtime(model) as outlast:
        session = await outlast.sessions.create(history=given)
        assert (await session.ask("Do you know me?")).text == "Yes, Ada."
        assert outline(model.requests[0].messages) == [
            "user: I am Ada.",
            "text: Hello Ada.",
            "user: Do you know me?",
        ]


async def test_open_calls_of_a_given_history_are_answered_truthfully(runtime: Runtime) -> None:
    """D10, P2: a call without a return is told to be uncertain, and never run."""
    runs: list[str] = []

    def pay(to: str) -> str:
        runs.append(to)
        return "paid"

    given = [
        ModelRequest(parts=[UserPromptPart("Pay both.")]),
        ModelResponse(parts=[ToolCallPart("pay", {"to": "a"}, "c1"), ToolCallPart("pay", {"to": "b"}, "c2")]),
        ModelRequest(parts=[ToolReturnPart("pay", "paid", "c1"), UserPromptPart("Well?")]),
        ModelResponse(parts=[TextPart("One moment."), ToolCallPart("pay", {"to": "c"}, "c3")]),
    ]
    async with runtime(scripted("I am not sure."), tools=[pay]) as outlast:
        session = await outlast.sessions.create(history=given)
        await session.ask("Did it work?")
        history = await session.history()
        assert runs == []
        for call_id in ("c2", "c3"):
            part = return_of(call_id, history)
            assert part.outcome == "interrupted"
            assert "may or may not have taken effect" in str(part.content)
        check_history(history)
        await check_providers(history)


async def test_a_turn_that_ends_without_a_word_gets_a_closing_line(runtime: Runtime) -> None:
    """D8: after tools, a model that stays silent even when asked again still ends in words."""
    async with runtime(scripted(call("add", a=1, b=1), "", reasoning("Nothing to say.")), tools=[add]) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Do it, say nothing.")
        assert (outcome.state, outcome.text) == ("completed", "Done. Tools used: add.")
        await check_providers(await session.history())


async def test_silence_without_any_work_is_a_failure(runtime: Runtime) -> None:
    """D8: a closing line never covers up that nothing was done."""
    async with runtime(scripted("", "")) as outlast:
        outcome = await (await outlast.sessions.create()).ask("Hello?")
        assert outcome.error is not None
        assert (outcome.state, outcome.error["kind"]) == ("failed", "model_misbehaved")


async def test_reasoning_stays_apart_from_text(runtime: Runtime) -> None:
    """D8: stored and shown, never mixed into the answer."""
    model = scripted([reasoning("They greet me."), text("Hello!")], "Still here.")
    async with runtime(model) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Hi")
        assert (outcome.text, outcome.reasoning) == ("Hello!", "They greet me.")
        assert "thinking: They greet me." in outline(await session.history())
        kinds = [event.data["kind"] for event in await events_of(session, "part.started")]
        assert kinds == ["reasoning", "text"]


async def test_a_reader_that_goes_away_does_not_stop_the_turn(runtime: Runtime) -> None:
    """D6: nobody needs to watch for a turn to go on."""
    here = Checkpoint()
    async with runtime(scripted([text("One. "), gate(here), text("Two.")])) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("Go on.")
        async with session.events() as stream:
            async for event in stream:
                if event.type == "part.delta":
                    break
        await here.reached()
        here.open()
        assert (await sent.outcome()).text == "One. Two."


async def test_another_owners_ids_are_unknown_ids(runtime: Runtime) -> None:
    """P7: the same answer for what is not there and for what is not yours."""
    async with runtime(lambda messages: "Hello") as outlast:
        mine, theirs = await outlast.owned_by("ada").create(), await outlast.owned_by("bob").create()
        outcome = await theirs.ask("Hi")
        assert outcome.turn_id is not None
        with pytest.raises(NotFound) as not_mine:
            await outlast.owned_by("ada").get(theirs.id)
        with pytest.raises(NotFound) as unknown:
            await outlast.owned_by("ada").get("ses_nobody")
        assert not_mine.value.message == unknown.value.message
        with pytest.raises(NotFound):
            await mine.turn(outcome.turn_id).outcome()
        with pytest.raises(NotFound):
            await mine.input((await theirs.send("again")).input.id)
        await theirs.settled()
        assert [each.id for each in await outlast.owned_by("ada").list()] == [mine.id]


async def test_a_model_is_chosen_from_the_allow_list(runtime: Runtime) -> None:
    """D15: per message, per session, else the agent's own; anything else is refused."""
    models = {"big": ScriptedModel(lambda _: "big"), "small": ScriptedModel(lambda _: "small")}
    async with runtime(lambda _: "own", models=models) as outlast:
        session = await outlast.sessions.create(model="small")
        assert (await (await outlast.sessions.create()).ask("Who?")).text == "own"
        assert (await session.ask("Who?")).text == "small"
        assert (await session.ask("Who?", model="big")).text == "big"
        assert (await session.ask("Who?")).text == "small"
        with pytest.raises(InvalidInput):
            await session.send("Who?", model="huge")
        with pytest.raises(InvalidInput):
            await outlast.sessions.create(model="huge")


async def test_a_message_for_another_model_that_waits_does_not_change_the_running_turn(runtime: Runtime) -> None:
    """D15: the model belongs to the turn that its message starts, and stays the same over all its requests."""
    here = Checkpoint()

    async def look() -> str:
        await here()
        return "seen"

    big = scripted(call("look"), call("look"), "Big is done.")
    small = scripted("Small is done.")
    async with runtime(scripted(), tools=[look], models={"big": big, "small": small}) as outlast:
        session = await outlast.sessions.create()
        first = await session.send("Look twice.", model="big")
        await here.reached()
        second = await session.send("And you?", model="small", when_busy="queue")
        here.open()
        assert (await first.outcome()).text == "Big is done."
        assert (await second.outcome()).text == "Small is done."
        names = [event.data["model"] for event in await events_of(session, "turn.started")]
        assert names == ["big", "small"]


async def test_reject_refuses_a_message_to_a_busy_session(runtime: Runtime) -> None:
    """D1: nothing is stored of a message that was refused; to an idle session it is an ordinary one."""
    here = Checkpoint()
    async with runtime(scripted([gate(here), text("Done.")])) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("Work.", when_busy="reject")
        await here.reached()
        with pytest.raises(SessionBusy):
            await session.send("Now!", when_busy="reject")
        here.open()
        await sent.outcome()
        assert outline(await session.history()) == ["user: Work.", "text: Done."]
