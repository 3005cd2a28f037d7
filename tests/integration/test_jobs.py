"""Jobs and state in one commit: on PostgreSQL a turn is started by a job, and by nothing else."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic_ai import Agent

from outlast import Outlast, Settings
from outlast.ids import SessionId
from outlast.sessions import inbox
from outlast.sessions.inbox import Limits
from outlast.store.unit import Unit, Work
from outlast.testing import ScriptedModel, call, text
from tests.support.runtime import FAST, event_types, events_of


def runtime(url: str, folder: Path, model: ScriptedModel, **agent: Any) -> Outlast[Any, Any]:
    settings = Settings(files=str(folder), **FAST)
    return Outlast(Agent(model, name="agent", **agent), database=url, settings=settings)


async def jobs(outlast: Outlast[Any, Any]) -> int:
    """How many were ever enqueued."""
    count = sa.text("SELECT count(DISTINCT job_id) FROM outlast_pgqueuer_log WHERE status = 'queued'")
    return await outlast.database.read(lambda connection: connection.execute(count).scalar_one())


async def test_a_whole_turn_runs_through_the_queue(postgres_url: str, tmp_path: Path) -> None:
    """K5, P1: a tool and a text, on PostgreSQL, started by a job that was committed with the message."""

    def depth(river: str) -> int:
        return len(river)

    model = ScriptedModel([call("depth", river="Glomma"), [text("Six metres.", chunk=2)], "Still six."])
    async with runtime(postgres_url, tmp_path / "files", model, tools=[depth]) as outlast:
        session = await outlast.sessions.create()
        outcome = await (await session.send("How deep is the Glomma?")).outcome(wait=30)
        assert (outcome.state, outcome.text) == ("completed", "Six metres.")
        assert [(each.tool, each.result) for each in outcome.calls] == [("depth", 6)]
        again = await (await session.send("Are you sure?")).outcome(wait=30)
        assert again.text == "Still six."
        types = await event_types(session)
        assert types.count("turn.started") == types.count("turn.completed") == 2
        assert "turn.failed" not in types
        assert await jobs(outlast) == 2


async def test_a_transaction_that_is_rolled_back_leaves_no_job(postgres_url: str, tmp_path: Path) -> None:
    """P1: neither row nor job; a job without its row would start nothing, a row without its job would never start."""

    async with runtime(postgres_url, tmp_path / "files", ScriptedModel(["Hello."])) as outlast:
        session = await outlast.sessions.create()

        def change_of_mind(unit: Unit) -> None:
            inbox.accept(unit, SessionId(session.id), "hello", owner_id="local", limits=Limits())
            raise ValueError("not after all")

        def fail(name: str, moment: str) -> None:
            if moment == "before":
                raise ValueError("no commit")

        with pytest.raises(ValueError, match="not after all"):
            await outlast.database.transaction(change_of_mind, name="accept")
        outlast.database.watcher = fail
        with pytest.raises(ValueError, match="no commit"):
            await session.send("hello")
        outlast.database.watcher = None
        assert await jobs(outlast) == 0
        assert await event_types(session) == ["session.created"]
        assert (await (await session.send("hello")).outcome(wait=30)).text == "Hello."
        assert await jobs(outlast) == 1


async def test_a_job_that_comes_twice_starts_one_attempt(postgres_url: str, tmp_path: Path) -> None:
    """P5: queues may deliver twice; the claim in our own table decides."""
    model = ScriptedModel(["Once.", "Twice?"])
    async with runtime(postgres_url, tmp_path / "files", model) as outlast:
        session = await outlast.sessions.create()
        outcome = await (await session.send("hello")).outcome(wait=30)
        (event,) = await events_of(session, "turn.queued")
        assert event.turn_id is not None

        def again(unit: Unit) -> None:
            unit.lock(session.id)
            assert event.turn_id is not None
            unit.submit(Work(event.turn_id, "local", "agent"))

        await outlast.database.transaction(again, name="again")
        second = await (await session.send("hello again")).outcome(wait=30)
        assert (outcome.text, second.text) == ("Once.", "Twice?")
        assert await jobs(outlast) == 3
        assert len(await events_of(session, "turn.started")) == 2
