"""Narration: what a call does, in words for people."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic_ai import Tool

import outlast as public
from outlast import hints
from outlast.errors import InvalidInput
from outlast.testing import call
from outlast.tool_hints import Narrate
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import BUDGET, parked_session, task_that
from tests.support.turns.runtime import Runtime, events_of, scripted

PHASES: Mapping[Any, Any] = {
    "running": "Searching flights to {city}",
    "done": lambda args: f"Found {len(args['city'])} flights",  # pyright: ignore
    "failed": "Found no flight to {city}",
}


def fails(_: Any) -> str:
    raise ValueError("no words")


def search(narrate: Narrate | None, *, error: bool = False) -> Tool[Any]:
    async def search(city: str) -> str:
        if error:
            raise RuntimeError("no airport")
        return f"to {city}"

    return Tool(search, metadata=hints(narrate=narrate))


@pytest.mark.parametrize(
    ("narrate", "began", "ended"),
    [
        ("Searching  {city}\n{{now}}", "Searching Oslo {now}", "Searching Oslo {now}"),
        (PHASES, "Searching flights to Oslo", "Found 4 flights"),
        ({"running": "On the way to {city}"}, "On the way to Oslo", "On the way to Oslo"),
        (lambda args: "x" * 900, "x" * 199 + "…", "x" * 199 + "…"),  # pyright: ignore
        ("To {town}", "search", "search"),
        (fails, "search", "search"),
        (lambda args: 7, "search", "search"),  # pyright: ignore
        (lambda args: " ", "search", "search"),  # pyright: ignore
        (None, None, None),
    ],
)
async def test_a_call_is_told_in_words(runtime: Runtime, narrate: Any, began: str | None, ended: str | None) -> None:
    """A12: a template, a function or one for each phase; what fails or is odd is told by the tool's name."""
    async with runtime(scripted([call("search", city="Oslo")], "Done."), tools=[search(narrate)]) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Go.")
        [first], [last] = await events_of(session, "call.started"), await events_of(session, "call.ended")
        assert (first.data.get("narration"), last.data.get("narration")) == (began, ended)


async def test_a_failed_call_has_words_of_its_own_and_no_secrets(runtime: Runtime) -> None:
    """A12, A11: the phase is the call's, and registered values are masked before anything is cut."""
    steps = [[call("search", city="hunter2-hunter2")], "Done."]
    async with runtime(scripted(*steps), tools=[search(PHASES, error=True)]) as outlast:
        outlast.secrets.add("hunter2-hunter2")
        session = await outlast.sessions.create()
        await session.ask("Go.")
        told = [*await events_of(session, "call.started"), *await events_of(session, "call.ended")]
        assert "hunter2" not in str([each.data for each in told])
        assert told[-1].data["narration"].startswith("Found no flight to ")


async def test_a_task_keeps_the_words_of_its_call(runtime: Runtime) -> None:
    """A12: in the task, in what events tell of it, and in what `spawn` makes; the end has its own words."""
    here = Checkpoint()

    async def search(city: str) -> str:
        public.output(f"looking at {city}\n")
        await here()
        return city

    tool = Tool(search, metadata=hints(narrate=PHASES))
    steps = [call("search", city="Oslo"), "It goes on.", "I see."]
    async with runtime(scripted(*steps), tools=[tool], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        assert (task.narration, task.name) == ("Searching flights to Oslo", "Searching flights to Oslo")
        [ended] = await events_of(session, "call.ended")
        assert (ended.data["outcome"], ended.data["narration"]) == ("parked", "Searching flights to Oslo")
        spawned = await session.spawn("search", {"city": "Bergen"}, wake="silent")
        assert spawned.narration == "Searching flights to Bergen"
        here.open()
        for each in (task, spawned):
            await task_that(session, lambda found, each=each: found.id == each.id and found.is_over)
        told = {event.data["task"]["id"]: event.data["task"] for event in await events_of(session, "task.ended")}
        assert told[task.id]["narration"] == "Found 4 flights"
        assert told[spawned.id]["narration"] == "Found 6 flights"
        await asyncio.wait_for(session.settled(), 20)


def test_a_phase_that_is_not_known_is_refused() -> None:
    """A12: a misspelt phase would never be seen."""
    with pytest.raises(InvalidInput):
        hints(narrate={"doing": "x"})  # pyright: ignore[reportArgumentType]
