"""Titles that a model makes from a session's first message (D10)."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from outlast import Session, TurnContext
from outlast.testing import ScriptedModel, error
from tests.support.models.prices import PricedModel
from tests.support.turns.runtime import Runtime, events_of, scripted


async def until(session: Session, holds: Callable[[Session], bool]) -> Session:
    async with asyncio.timeout(20):
        while not holds(await session.refresh()):  # noqa: ASYNC110 - in the database
            await asyncio.sleep(0.01)
    return session


async def test_a_model_makes_the_title_beside_the_first_turn(runtime: Runtime) -> None:
    """D10: in one line, without quotation marks; later turns make none."""
    titles = ScriptedModel(lambda _: '"A trip\nto Oslo."')
    async with runtime(scripted("Gladly.", "Yes."), title_model=titles) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Find me a flight to Oslo on Friday, please, and a hotel near the fjord.")
        await until(session, lambda seen: seen.title_from == "model")
        assert session.title == "A trip to Oslo"
        await session.ask("Thanks.")
        assert len(titles.requests) == 1
        (told,) = [each.data for each in await events_of(session, "session.changed") if "title" in each.data]
        assert told == {"title": "A trip to Oslo", "title_from": "model"}


async def test_a_title_is_made_of_no_secret(runtime: Runtime) -> None:
    """D10, A11: also one that was registered when the message was there already."""
    titles = ScriptedModel(lambda _: "It is hunter2-hunter2.")

    @asynccontextmanager
    async def deps(context: TurnContext) -> AsyncGenerator[None]:
        outlast.secrets.add("hunter2-hunter2")
        yield

    async with runtime(scripted("Gladly."), title_model=titles, deps=deps) as outlast:
        session = await outlast.sessions.create()
        await session.ask("My password is hunter2-hunter2. Keep it.")
        await until(session, lambda seen: seen.title_from == "model")
        assert "hunter2" not in repr(titles.requests[0].messages)
        assert "hunter2" not in (session.title or "hunter2")


async def test_a_persons_title_wins(runtime: Runtime) -> None:
    """D10: whenever it comes."""
    async with runtime(scripted("Gladly."), title_model=ScriptedModel(lambda _: "A trip")) as outlast:
        named = await outlast.sessions.create(title="Mine")
        await named.ask("Hello")
        assert ((await named.refresh()).title, named.title_from) == ("Mine", "person")


async def test_without_a_title_the_first_words_stand_for_it(runtime: Runtime) -> None:
    """D10: the turn does not fail for it."""
    failing = ScriptedModel(lambda _: error(RuntimeError("no title today")))
    async with runtime(scripted("Gladly."), title_model=failing) as outlast:
        session = await outlast.sessions.create()
        assert (await session.ask("Hello there")).text == "Gladly."
        assert ((await session.refresh()).title, session.title_from) == ("Hello there", "message")


async def test_what_a_title_costs_is_paid_by_the_owner(runtime: Runtime) -> None:
    """D10, H1"""
    titles = PricedModel(["A trip"], dollars=0.5)
    async with runtime(scripted("Gladly."), title_model=titles) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Hello")
        await until(session, lambda seen: seen.title_from == "model")
        assert (await outlast.usage_of("local")).today.requests == 2
