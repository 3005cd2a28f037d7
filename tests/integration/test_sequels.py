"""On PostgreSQL, a turn that comes of work which ran here is claimed by the commit that makes it: no job, no look."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage

from outlast import Outlast, Session, Settings, hints
from outlast.engines.distributed import DistributedEngine
from outlast.events.event import Event
from outlast.store.outbox import Work
from outlast.testing import ScriptedModel, call
from tests.support.runtime import FAST, event_types, events_of

_JOBS = sa.text("SELECT count(DISTINCT job_id) FROM outlast_pgqueuer_log WHERE status = 'queued'")


class Digging:
    """Tools that end when they are let: `dig` is parked at once, for `hold` its turn waits."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()

    async def dig(self) -> str:
        await self.may_end.wait()
        return "water"

    async def hold(self) -> str:
        await self.may_end.wait()
        return "held"


def runtime(url: str, folder: Path, work: Digging, **settings: Any) -> Outlast[Any, Any]:
    def answer(messages: Sequence[ModelMessage]) -> Any:
        return call("hold" if "Hold." in str(messages) else "dig") if len(messages) == 1 else "Done."

    tools = [Tool(work.dig, metadata=hints(budget=0.005)), work.hold]
    chosen: dict[str, Any] = {**FAST, "budget": None, "wake_company": timedelta(0), **settings}
    agent = Agent(ScriptedModel(answer), name="agent", tools=tools)
    return Outlast(agent, database=url, settings=Settings(files=str(folder / "files"), **chosen))


async def jobs(outlast: Outlast[Any, Any]) -> int:
    """How many were ever enqueued."""
    return await outlast.database.read(lambda connection: connection.execute(_JOBS).scalar_one())


async def told(session: Session, type_: str, count: int) -> list[Event]:
    """The events of this type, when there are so many."""
    async with asyncio.timeout(30):
        while len(found := await events_of(session, type_)) < count:  # noqa: ASYNC110 - in the database
            await asyncio.sleep(0.02)
    return found


async def test_a_wake_goes_on_where_the_task_ran(postgres_url: str, tmp_path: Path) -> None:
    """P3, P5: told once, by one attempt, and no other worker was asked."""
    work = Digging()
    async with runtime(postgres_url, tmp_path, work) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Dig.")).outcome(wait=30)
        work.may_end.set()
        await told(session, "turn.completed", 2)
        assert await jobs(outlast) == 1
        queued, begun = await events_of(session, "turn.queued"), await events_of(session, "turn.started")
        assert [each.data["attempt"] for each in begun] == [1, 1]
        assert (await event_types(session)).count("turn.resumed") == 0
        assert begun[1].at == queued[1].at
        assert len(await events_of(session, "input.delivered")) == 2


async def test_a_message_that_waited_for_a_turn_is_the_next_one_without_a_job(
    postgres_url: str, tmp_path: Path
) -> None:
    """P1: in the commit that ends the turn before it."""
    work = Digging()
    async with runtime(postgres_url, tmp_path, work) as outlast:
        session = await outlast.sessions.create()
        await session.send("Hold.")
        await session.send("And then?", when_busy="queue")
        work.may_end.set()
        await told(session, "turn.completed", 2)
        assert await jobs(outlast) == 1
        assert len(await events_of(session, "input.delivered")) == 2


async def test_without_room_a_wake_is_for_whoever_has_some(postgres_url: str, tmp_path: Path) -> None:
    """D13: a full worker takes nothing more."""
    digging, holding, other = Digging(), Digging(), Digging()
    digging.hold = holding.hold
    async with runtime(postgres_url, tmp_path, digging, max_turns_per_worker=1) as outlast:
        session, busy = await outlast.sessions.create(), await outlast.sessions.create()
        await (await session.send("Dig.")).outcome(wait=30)
        await busy.send("Hold.")
        await told(busy, "call.started", 1)
        digging.may_end.set()
        await told(session, "turn.queued", 2)
        assert await jobs(outlast) == 3
        assert len(await events_of(session, "turn.started")) == 1
        async with runtime(postgres_url, tmp_path, other):
            await told(session, "turn.completed", 2)
        holding.may_end.set()
        await told(busy, "turn.completed", 1)


async def test_a_stop_that_comes_before_the_claim_is_known_here_stops_the_turn(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: others see the commit before its answer is here, and their signal finds nobody who listens."""
    work, held = Digging(), asyncio.Queue[Callable[[], None]]()
    plain = DistributedEngine.notice

    def notice(self: DistributedEngine, made: Sequence[Work]) -> None:
        later = partial(plain, self, made)
        held.put_nowait(later) if any(each.is_sequel for each in made) else later()

    monkeypatch.setattr(DistributedEngine, "notice", notice)
    elsewhere = runtime(postgres_url, tmp_path, Digging(), run_work=False)
    async with runtime(postgres_url, tmp_path, work) as outlast, elsewhere:
        session = await outlast.sessions.create()
        await (await session.send("Dig.")).outcome(wait=30)
        work.may_end.set()
        begin = await held.get()
        stopping = asyncio.create_task((await elsewhere.sessions.get(session.id)).stop())
        await told(session, "session.held", 1)
        begin()
        await stopping
        assert len(await events_of(session, "turn.stopped")) == 1
