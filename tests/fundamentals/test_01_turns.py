"""A turn: one stretch of agent work, from a message to its outcome. It is kept, whatever becomes of the process."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Agent

from outlast import Outlast, OutlastError
from outlast.testing import ScriptedModel, call, error, gate, last_user_text, text

Start = Callable[..., Outlast[Any, Any]]


def add(a: int, b: int) -> int:
    return a + b


async def test_a_message_starts_a_turn_and_the_turn_has_an_outcome(start: Start) -> None:
    """Any pydantic-ai agent, unchanged: what the model said, what it called, and what that used (D1, D7)."""
    agent = Agent(ScriptedModel([call("add", a=2, b=3), "The sum is 5."]), tools=[add])
    async with start(agent) as outlast:
        session = await outlast.sessions.create(title="Sums")
        outcome = await session.ask("What is 2 + 3?")
    assert (outcome.state, outcome.text) == ("completed", "The sum is 5.")
    assert [(each.tool, each.result) for each in outcome.calls] == [("add", 5)]
    assert outcome.usage.requests == 2


async def test_a_session_is_a_conversation_and_outlives_the_process(start: Start) -> None:
    """The model sees what was said before; so does the next process (P1, D1)."""
    async with start(Agent(ScriptedModel(["Hello Ada."]))) as outlast:
        session = await outlast.sessions.create()
        await session.ask("I am Ada.")
    model = ScriptedModel(["You are Ada."])
    async with start(Agent(model)) as outlast:
        again = await outlast.sessions.get(session.id)
        assert (await again.ask("Who am I?")).text == "You are Ada."
        assert len(await again.history()) == 4
    assert len(model.requests[0].messages) == 3


async def test_sending_returns_when_the_message_is_kept_and_the_outcome_can_be_asked_for_later(start: Start) -> None:
    """`send` waits for the commit, `outcome` for the turn; with a limit it says what is there so far (D7)."""
    go_on = asyncio.Event()
    async with start(Agent(ScriptedModel([[text("One. "), gate(go_on), text("Two.")]]))) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("Count.")
        async with session.events() as stream:
            async for event in stream:
                if event.type == "part.delta":
                    break
        early = await sent.outcome(wait=0)
        assert (early.state, early.text) == ("running", "One. ")
        go_on.set()
        assert (await sent.outcome()).text == "One. Two."


async def test_the_same_message_sent_twice_is_one_message(start: Start) -> None:
    """A client that does not know whether it was heard sends again with the same key (D2)."""
    agent = Agent(ScriptedModel(lambda messages: f"You said {last_user_text(messages)}."))
    async with start(agent) as outlast:
        session = await outlast.sessions.create()
        first = await session.send("hello", idempotency_key="once")
        second = await session.send("hello", idempotency_key="once")
        assert (await first.outcome()).turn_id == (await second.outcome()).turn_id
        assert len(await session.history()) == 2


async def test_a_hiccup_of_the_model_is_tried_again_and_a_turn_that_failed_can_be_retried(start: Start) -> None:
    """What passes is tried again by itself; what does not ends the turn with its reason, and `retry` goes on (D9)."""
    agent = Agent(ScriptedModel([error(503), "Here.", error(401), "Here again."]))
    async with start(agent) as outlast:
        session = await outlast.sessions.create()
        assert (await session.ask("Are you there?")).text == "Here."
        failed = await session.ask("Still?")
        assert failed.state == "failed"
        assert failed.error is not None
        assert (await (await session.retry()).outcome()).text == "Here again."


async def test_the_last_message_can_be_answered_anew(start: Start) -> None:
    """The model no longer sees its first answer; the log keeps it (D10)."""
    async with start(Agent(ScriptedModel(["Red.", "Blue."]))) as outlast:
        session = await outlast.sessions.create()
        assert (await session.ask("A colour?")).text == "Red."
        assert (await (await session.regenerate()).outcome()).text == "Blue."
        assert len(await session.history()) == 2
        assert len((await session.messages()).items) == 3


async def test_errors_have_a_code_that_programs_can_rely_on(start: Start) -> None:
    """Every error that Outlast raises on purpose is an `OutlastError`; its words say what to do next."""
    async with start(Agent(ScriptedModel([]))) as outlast:
        with pytest.raises(OutlastError) as unknown:
            await outlast.sessions.get("ses_unknown")
        assert unknown.value.code == "not_found"
        session = await outlast.sessions.create()
        with pytest.raises(OutlastError) as blank:
            await session.send("   ")
        assert blank.value.code == "invalid_input"
