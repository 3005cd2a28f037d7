"""The engine's port on PgQueuer: jobs and state in one commit, and the same worker code runs the turn."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic_ai import Agent

from outlast import Settings
from outlast.ids import SessionId
from outlast.sessions import inbox
from outlast.sessions.inbox import Limits
from outlast.store.unit import Unit, Work
from outlast.testing import ScriptedModel, call, text
from tests.support.pgqueuer_engine import PgQueuerOutlast
from tests.support.runtime import FAST, event_types, events_of


def runtime(url: str, folder: Path, model: ScriptedModel, **agent: Any) -> PgQueuerOutlast:
    outlast = PgQueuerOutlast(Agent(model, name="agent", **agent), database=url, settings=Settings(**FAST))
    outlast.folder = folder
    return outlast


async def jobs(outlast: PgQueuerOutlast) -> int:
    """All that were ever enqueued: those that wait and those that were taken."""
    count = sa.text("SELECT (SELECT count(*) FROM pgqueuer) + (SELECT count(*) FROM pgqueuer_log)")
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
        queued = [event.turn_id for event in await events_of(session, "turn.queued")]
        assert outlast.engine.handled == queued


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
        assert len(outlast.engine.handled) == 1


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
        assert len(outlast.engine.handled) == 3
        assert len(await events_of(session, "turn.started")) == 2
