"""A tool that requires another one to be called first (A6)."""

import asyncio

import pytest
from pydantic_ai import Tool

from outlast import Binding, hints
from outlast.testing import call
from tests.support.turns.runtime import Runtime, scripted

RAN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def read_guide(is_broken: bool = False) -> str:
    if is_broken:
        raise ValueError("no guide")
    return "be careful"


def publish() -> str:
    RAN.append("published")
    return "ok"


PUBLISH = Tool(publish, metadata=hints(requires="read_guide"), max_retries=0)
FIRST = "The tool 'publish' was not run: it requires that 'read_guide' was called before. Call 'read_guide' first."


async def test_the_refusal_names_what_must_be_called_first(runtime: Runtime) -> None:
    """A6: a call of it counts from its success on, in later turns and after a restart too; refusals cost no retries."""
    steps = [call("publish"), call("publish"), call("read_guide", is_broken=True), call("publish"), call("read_guide")]
    async with runtime(scripted(*steps, call("publish"), "Done."), tools=[read_guide, PUBLISH]) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("publish")
        told = [(each.tool, each.outcome) for each in outcome.calls]
        assert told[:3] == [("publish", "failed"), ("publish", "failed"), ("read_guide", "failed")]
        assert told[3:] == [("publish", "failed"), ("read_guide", "success"), ("publish", "success")]
        assert outcome.calls[0].result == FIRST
    model = scripted(call("publish"), "Done.", call("publish"), "Done.")
    async with runtime(model, tools=[read_guide, PUBLISH]) as outlast:
        session = await outlast.sessions.get(session.id)
        assert (await session.ask("again")).calls[0].outcome == "success"
        other = await outlast.sessions.create()
        assert (await other.ask("again")).calls[0].outcome == "failed"
    assert RAN == ["published", "published"]


async def test_a_call_that_ended_in_the_background_counts(runtime: Runtime) -> None:
    """A6: its handle does not, its end does."""
    release = asyncio.Event()

    async def read_guide() -> str:
        await release.wait()
        return "be careful"

    guide = Tool(read_guide, metadata=hints(budget=0.01))
    model = scripted(call("read_guide"), call("publish"), "Wait.", "Read.", call("publish"), "Done.")
    async with runtime(model, tools=[guide, PUBLISH]) as outlast:
        session = await outlast.sessions.create()
        outcome = await (await session.send("read")).outcome()
        assert [each.outcome for each in outcome.calls] == ["parked", "failed"]
        release.set()
        await session.settled()
        assert (await session.ask("publish")).calls[0].outcome == "success"


async def test_a_binding_may_waive_it(runtime: Runtime) -> None:
    """A6, D11: other bound sessions do not."""
    model = scripted(call("publish"), "One.", call("publish"), "Two.")
    async with runtime(model, tools=[read_guide, PUBLISH]) as outlast:
        waived = await outlast.sessions.create(binding=Binding(kind="page", id="1", waives_prerequisites=True))
        bound = await outlast.sessions.create(binding=Binding(kind="page", id="2"))
        assert (await waived.ask("go")).calls[0].outcome == "success"
        assert (await bound.ask("go")).calls[0].outcome == "failed"


@pytest.mark.parametrize("wrong", [{}, {"tools": "x"}, {"tool": ""}, [{"connection": "a", "b": "c"}]])
def test_what_is_not_understood_is_refused_where_it_is_written(wrong: object) -> None:
    with pytest.raises(ValueError, match="requires="):
        hints(requires=wrong)  # pyright: ignore[reportArgumentType]
