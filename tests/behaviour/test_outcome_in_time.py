"""An outcome asked for with a time limit is what is there, and what is there is never left out."""

import asyncio
from pathlib import Path

from pydantic_ai import Agent

from outlast import Outlast, hints
from outlast.testing import ScriptedModel, call, gate, text


async def test_a_turn_that_ended_is_told_without_waiting(tmp_path: Path) -> None:
    """D7: with no time to wait, an ended turn still gives its whole outcome, also after a restart."""
    agent = Agent(ScriptedModel(["Oslo is sunny."]), name="weather")
    async with Outlast(agent, database=tmp_path / "app.db") as outlast:
        session = await outlast.sessions.create()
        await session.ask("How is Oslo?")

    async with Outlast(agent, database=tmp_path / "app.db") as outlast:
        outcome = await (await outlast.sessions.get(session.id)).settled(wait=0)
        assert outcome is not None
        assert (outcome.state, outcome.text, outcome.output) == ("completed", "Oslo is sunny.", "Oslo is sunny.")


async def test_a_turn_that_runs_is_told_as_far_as_it_is(tmp_path: Path) -> None:
    """D7: at the time limit the outcome is `running`, with the text so far."""
    go_on = asyncio.Event()
    agent = Agent(ScriptedModel([[text("Oslo "), gate(go_on), text("is sunny.")]]), name="weather")
    async with Outlast(agent, database=tmp_path / "app.db") as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("How is Oslo?")
        turn = await sent.turn()
        async with session.events() as stream:
            async for event in stream:
                if event.type == "part.delta":
                    break
        outcome = await turn.outcome(wait=0)
        assert (outcome.state, outcome.text) == ("running", "Oslo ")
        go_on.set()
        assert (await turn.outcome()).text == "Oslo is sunny."


async def test_a_message_that_still_waits_is_told_as_queued(tmp_path: Path) -> None:
    """D7: the time limit also counts while the message waits for its turn."""
    go_on = asyncio.Event()
    agent = Agent(ScriptedModel([[text("Oslo "), gate(go_on), text("is sunny.")], "Rome too."]), name="weather")
    async with Outlast(agent, database=tmp_path / "app.db") as outlast:
        session = await outlast.sessions.create()
        first = await session.send("How is Oslo?")
        await first.turn()
        second = await session.send("And Rome?", when_busy="queue")
        async with asyncio.timeout(30):
            outcome = await second.outcome(wait=0.01)
        assert (outcome.turn_id, outcome.state) == (None, "queued")
        go_on.set()
        assert (await second.outcome()).text == "Rome too."
        assert (await second.outcome(wait=0)).text == "Rome too."


async def test_an_outcome_may_wait_until_the_session_has_settled(database_url: str) -> None:
    """D7: the turn ends while its background work goes on; with `settle` it is what that work was made of."""
    done = asyncio.Event()
    steps = [call("measure"), "It is being measured.", "It is 12 metres wide."]
    agent = Agent(ScriptedModel(steps), name="surveyor")

    @agent.tool_plain(metadata=hints(budget=0.01))
    async def measure() -> str:  # pyright: ignore[reportUnusedFunction]
        await done.wait()
        return "12 metres"

    async with Outlast(agent, database=database_url) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("How wide is it?")
        assert (await sent.outcome()).text == "It is being measured."
        turn = await sent.turn()
        for asked in (sent, turn):
            early = await asked.outcome(wait=0.05, settle=True)
            assert (early.text, early.turn_id) == ("It is being measured.", turn.id)
        waiting = [asyncio.create_task(asked.outcome(settle=True)) for asked in (sent, turn)]
        done.set()
        for each in await asyncio.gather(*waiting):
            assert each.text == "It is 12 metres wide."
        assert (await turn.outcome()).text == "It is being measured."
