"""When text reaches its readers: the first of a part at once, the rest in larger pieces."""

import asyncio
from datetime import timedelta

from outlast import Session
from outlast.testing import gate, reasoning, text
from tests.support.moments.commits import HeldCommits, let_run
from tests.support.turns.runtime import Runtime, scripted

NEVER = timedelta(minutes=10)
"""Longer than any test: text that is held back does not come before its response has ended."""


async def texts_told(session: Session, said: asyncio.Event, *, after: str) -> list[str]:
    """Each delta as a reader gets it. The model goes on when the reader has one that ends so."""
    told: list[str] = []
    async with asyncio.timeout(60), session.events() as stream:
        async for event in stream:
            if event.type == "part.delta":
                told.append(event.data["text"])
                if told[-1].endswith(after):
                    said.set()
            if event.type == "turn.completed":
                break
    return told


async def test_the_first_text_of_an_answer_is_not_held_back(runtime: Runtime) -> None:
    """M16, P4: a reader has it while the model still speaks; what follows is joined."""
    said = asyncio.Event()
    model = scripted([text("The "), gate(said), text("river is low", chunk=3)])
    async with runtime(model, coalesce=NEVER) as outlast:
        session = await outlast.sessions.create()
        await session.send("Go.")
        assert await texts_told(session, said, after="The ") == ["The ", "river is low"]


async def test_a_part_that_begins_while_another_is_written_is_not_held_back(runtime: Runtime) -> None:
    """M16: its first text goes right after the commit that is under way."""
    thought, said = asyncio.Event(), asyncio.Event()
    model = scripted([reasoning("Hm"), gate(thought), text("The "), gate(said), text("river")])
    async with runtime(model, coalesce=NEVER) as outlast:
        commits = HeldCommits(outlast.database)
        session = await outlast.sessions.create()
        commits.hold("flush")
        await session.send("Go.")
        await commits.reached("flush")
        thought.set()
        await let_run()
        commits.release("flush")
        assert await texts_told(session, said, after="The ") == ["Hm", "The ", "river"]
