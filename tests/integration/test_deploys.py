"""Deploys: a new version goes on with what the old one left, also where it no longer has a tool or an agent."""

import asyncio
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage

from outlast import Outlast, Settings, hints
from outlast.calls.outcomes import MAY_HAVE_RUN
from outlast.testing import ScriptedModel, call, last_user_text, tool_returns
from outlast.testing.step import Step
from tests.support.turns.background import only_task, parked
from tests.support.turns.runtime import FAST, events_of

PATIENCE = 60


class Version:
    """A version of an app: its agent, and the name under which it has the one tool that matters."""

    def __init__(self, database: str, folder: Path, *, agent: str = "river", tool: str = "measure") -> None:
        self.begun = asyncio.Event()
        self.runs = 0
        self._database, self._folder, self._agent, self._tool = database, folder, agent, tool

    async def work(self) -> str:
        self.runs += 1
        self.begun.set()
        await asyncio.Event().wait()
        return "never"

    def __call__(self, *, budget: float | None = None, **settings: Any) -> Outlast[Any, Any]:
        tool = Tool(self.work, name=self._tool, metadata=hints(read_only=True, budget=budget))
        agent = Agent(ScriptedModel(self._reply), tools=[tool], name=self._agent)
        chosen: dict[str, Any] = {**FAST, "files": str(self._folder / "files"), **settings}
        return Outlast(agent, database=self._database, settings=Settings(**chosen))

    def _reply(self, messages: list[ModelMessage]) -> Step:
        if last_user_text(messages) == "work" and not tool_returns(messages):
            return [call(self._tool)]
        return ["Heard."]


async def test_an_open_call_of_a_tool_that_was_renamed_is_told_truthfully(database_url: str, tmp_path: Path) -> None:
    """P2, DESIGN 8: though it only looks, nobody can run it again: the model is told that it may have run."""
    old, new = Version(database_url, tmp_path), Version(database_url, tmp_path, tool="gauge")
    async with old() as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("work")
        await old.begun.wait()
        turn_id = (await sent.turn()).id
    async with new() as outlast:
        session = await outlast.sessions.get(session.id)
        outcome = await session.turn(turn_id).outcome(wait=PATIENCE)
        assert (outcome.state, outcome.text) == ("completed", "Heard.")
        [told] = tool_returns(await session.history()).values()
        [ended] = await events_of(session, "call.ended")
        assert told == MAY_HAVE_RUN
        assert (ended.data["outcome"], ended.data["part"]["content"]) == ("interrupted", MAY_HAVE_RUN)
    assert (old.runs, new.runs) == (1, 0)


async def test_a_parked_call_of_a_tool_that_was_renamed_ends_and_says_why(database_url: str, tmp_path: Path) -> None:
    """P3, B10: it would be run again, and there is nothing to run."""
    old, new = Version(database_url, tmp_path), Version(database_url, tmp_path, tool="gauge")
    async with old(budget=0.02) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("work")).outcome(wait=PATIENCE)
        await parked(session)
    async with new() as outlast:
        session = await outlast.sessions.get(session.id)
        task = await outlast.tasks.wait((await only_task(session)).id, seconds=PATIENCE)
        assert task.state == "failed"
        assert "'measure' cannot be run: it is not there" in str(task.error)
        outcome = await session.settled()
        assert outcome is not None
        assert outcome.state == "completed"
    assert (old.runs, new.runs) == (1, 0)


async def test_a_turn_of_an_agent_that_was_removed_waits_and_says_for_what(
    ready_postgres_url: str, tmp_path: Path
) -> None:
    """DESIGN 8: handed over in the middle, nothing of it is lost; it goes on when somebody has the agent again."""
    old, new = Version(ready_postgres_url, tmp_path, agent="sea"), Version(ready_postgres_url, tmp_path)
    again = Version(ready_postgres_url, tmp_path, agent="sea", tool="gauge")
    async with old() as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("work")
        await old.begun.wait()
        turn_id = (await sent.turn()).id
    async with new() as outlast:
        session = await outlast.sessions.get(session.id)
        turn = session.turn(turn_id)
        waiting = await turn.outcome(wait=0)
        assert (waiting.state, waiting.no_worker_for, session.state) == ("queued", "sea", "queued")
        mine = await outlast.sessions.create()
        assert (await (await mine.send("hello")).outcome(wait=PATIENCE)).no_worker_for is None
        async with again():
            outcome = await turn.outcome(wait=PATIENCE)
            assert (outcome.state, outcome.no_worker_for) == ("completed", None)
