"""The reference pages are what the code says."""

import asyncio
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from pydantic_ai import Agent

from docs.generate import pages
from outlast import Outlast, Settings
from outlast.events.data.by_type import DATA
from outlast.events.types import EventType
from outlast.testing import ScriptedModel, call, error, gate, text


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_reference_page_is_up_to_date(page: Path) -> None:
    """I5: run `make docs` when this fails."""
    assert page.read_text(encoding="utf-8") == pages()[page]


def test_every_event_type_is_described() -> None:
    """E2"""
    assert set(DATA) == set(EventType)


async def test_events_hold_no_field_that_is_not_described(tmp_path: Path) -> None:
    """E2: a turn with a tool, one that fails, and one that is stopped."""
    agent = Agent(
        ScriptedModel(
            [
                [text("Looking."), call("look")],
                "Done.",
                error(400),
                [text("One moment"), gate(asyncio.Event())],
            ]
        )
    )

    @agent.tool_plain
    def look() -> str:  # pyright: ignore[reportUnusedFunction]
        return "nothing there"

    async with Outlast(agent, database=tmp_path / "app.db", settings=Settings(model_retries=0)) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Look.")
        await session.ask("Fail.")
        sent = await session.send("Take your time.")
        await sent.turn()
        await session.stop()
        async with session.events(follow=False) as stream:
            seen = [event async for event in stream]

    assert {"turn.completed", "turn.failed", "turn.stopped", "call.ended"} <= {event.type for event in seen}
    for event in seen:
        described = DATA[EventType(event.type)]
        assert set(event.data) <= set(described.__annotations__), event.type
        TypeAdapter(described).validate_python(event.data, strict=True)
