"""Messages to a session at work: each is kept, and says when it wants to be heard."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Agent

from outlast import Context, Outlast, OutlastError
from outlast.testing import ScriptedModel, call, gate, text, texts_seen

Start = Callable[..., Outlast[Any, Any]]


class Look:
    """A tool that says when it was called, and ends when it may."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.may_end = asyncio.Event()

    async def look(self) -> str:
        self.called.set()
        await self.may_end.wait()
        return "rain"


async def test_a_message_steers_the_running_turn(start: Start) -> None:
    """The default: the model sees it with its next request, after the tools that run (D1, D3)."""
    weather, model = Look(), ScriptedModel([call("look"), "Rain, 50 Fahrenheit."])
    async with start(Agent(model, tools=[weather.look])) as outlast:
        session = await outlast.sessions.create()
        first = await session.send("How is the weather?")
        await weather.called.wait()
        steering = await session.send("In Fahrenheit.")
        weather.may_end.set()
        assert (await first.outcome()).text == "Rain, 50 Fahrenheit."
        assert (await steering.outcome()).turn_id == (await first.outcome()).turn_id
    assert texts_seen(model.requests[1].messages) == ["How is the weather?", "In Fahrenheit."]


async def test_a_queued_message_is_the_next_turn(start: Start) -> None:
    """It does not disturb the one that runs (D1)."""
    weather = Look()
    async with start(Agent(ScriptedModel([call("look"), "Rain.", "Sun."]), tools=[weather.look])) as outlast:
        session = await outlast.sessions.create()
        today = await session.send("And today?")
        await weather.called.wait()
        tomorrow = await session.send("And tomorrow?", when_busy="queue")
        weather.may_end.set()
        assert (await today.outcome()).text == "Rain."
        assert (await tomorrow.outcome()).text == "Sun."


async def test_an_interrupting_message_stops_the_turn_and_starts_its_own(start: Start) -> None:
    """What was said so far stays (D1, D5)."""
    never = asyncio.Event()
    model = ScriptedModel([[text("Once upon"), gate(never), text(" a time")], "Sorry."])
    async with start(Agent(model)) as outlast:
        session = await outlast.sessions.create()
        story = await session.send("Tell a story.")
        async with session.events() as stream:
            async for event in stream:
                if event.type == "part.delta":
                    break
        instead = await session.send("No, be quiet.", when_busy="interrupt")
        assert (await story.outcome()).state == "stopped"
        assert (await story.outcome()).text == "Once upon"
        assert (await instead.outcome()).text == "Sorry."


async def test_a_message_can_ask_to_be_refused_instead(start: Start) -> None:
    """For programs that must not be heard later (D1)."""
    weather = Look()
    async with start(Agent(ScriptedModel([call("look"), "Rain."]), tools=[weather.look])) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("How is the weather?")
        await weather.called.wait()
        with pytest.raises(OutlastError) as refused:
            await session.send("Now!", when_busy="reject")
        assert refused.value.code == "session_busy"
        weather.may_end.set()
        await sent.outcome()


async def test_what_waits_can_be_seen_edited_and_removed(start: Start) -> None:
    """Until the model has seen it, it is the user's own (D2)."""
    weather, model = Look(), ScriptedModel([call("look"), "Rain.", "Noted."])
    async with start(Agent(model, tools=[weather.look])) as outlast:
        session = await outlast.sessions.create()
        await session.send("How is the weather?")
        await weather.called.wait()
        kept = await session.send("Tommorow?", when_busy="queue")
        gone = await session.send("Never mind.", when_busy="queue")
        await session.edit_input(kept.input.id, "Tomorrow?")
        await session.remove_input(gone.input.id)
        assert [each.text for each in await session.inbox()] == ["Tomorrow?"]
        weather.may_end.set()
        assert (await kept.outcome()).text == "Noted."
    assert texts_seen(model.requests[-1].messages) == ["How is the weather?", "Tomorrow?"]


async def test_a_message_can_say_where_it_was_written(start: Start) -> None:
    """Shown to the model as data, apart from what the user said (D4)."""
    model = ScriptedModel(["It is the Elbe."])
    async with start(Agent(model)) as outlast:
        session = await outlast.sessions.create()
        await session.ask("What is this?", context=Context("A map of Hamburg.", url="https://maps.example/hamburg"))
    assert "A map of Hamburg." in str(model.requests[0].messages)
