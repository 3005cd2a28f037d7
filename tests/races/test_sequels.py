"""On PostgreSQL, a turn that comes of work which ran here is claimed by the commit that makes it: no job, no look."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage

from outlast import Outlast, Session, Settings, TurnContext, hints
from outlast.calls.call import current_call
from outlast.engines.distributed import DistributedEngine
from outlast.events.event import Event
from outlast.ids import SessionId, WorkerId
from outlast.runs.turns.attempt import Attempt
from outlast.store.database import Moment
from outlast.store.outbox import Work
from outlast.store.repositories.inputs import InputKind
from outlast.store.unit import Unit
from outlast.testing import ScriptedModel, call
from outlast.transitions.turns import inbox
from tests.support.moments.hanging import hanging_deps, wait_only_for_signals
from tests.support.turns.runtime import FAST, event_types, events_of

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


def runtime(url: str, folder: Path, work: Digging, deps: Any = None, **settings: Any) -> Outlast[Any, Any]:
    def answer(messages: Sequence[ModelMessage]) -> Any:
        return call("hold" if "Hold." in str(messages) else "dig") if len(messages) == 1 else "Done."

    tools = [Tool(work.dig, metadata=hints(budget=0.005)), work.hold]
    chosen: dict[str, Any] = {**FAST, "budget": None, "wake_company": timedelta(0), **settings}
    agent = Agent(ScriptedModel(answer), name="agent", tools=tools)
    return Outlast(agent, database=url, deps=deps, settings=Settings(files=str(folder / "files"), **chosen))


def hold_sequels(patch: pytest.MonkeyPatch) -> asyncio.Queue[Callable[[], None]]:
    """The answer to the commit that makes a sequel is not here yet; each that is held can be let go."""
    held, plain = asyncio.Queue[Callable[[], None]](), DistributedEngine.notice

    def notice(self: DistributedEngine, made: Sequence[Work]) -> None:
        later = partial(plain, self, made)
        held.put_nowait(later) if any(each.is_sequel for each in made) else later()

    patch.setattr(DistributedEngine, "notice", notice)
    return held


async def jobs(outlast: Outlast[Any, Any]) -> int:
    """How many were ever enqueued."""
    return await outlast.database.read(lambda connection: connection.execute(_JOBS).scalar_one())


async def told(session: Session, type_: str, count: int) -> list[Event]:
    """The events of this type, when there are so many."""
    async with asyncio.timeout(60):
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


async def test_in_a_pause_a_wake_waits(postgres_url: str, tmp_path: Path) -> None:
    """K1: what is accepted meanwhile is begun after it."""
    work = Digging()
    async with runtime(postgres_url, tmp_path, work) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Dig.")).outcome(wait=30)
        await outlast.pause()
        work.may_end.set()
        await told(session, "turn.queued", 2)
        assert len(await events_of(session, "turn.started")) == 1
        await outlast.unpause()
        await told(session, "turn.completed", 2)


async def test_wakes_of_many_owners_that_come_at_once_share_the_places(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D13: each of them sees that there is room, and asks the database something before it takes it."""
    work, most = Digging(), list[int]()
    async with runtime(postgres_url, tmp_path, work, max_turns_per_worker=2) as outlast:
        sessions = [await outlast.owned_by(f"owner {at}").create() for at in range(8)]
        for each in sessions:
            await (await each.send("Dig.")).outcome(wait=30)
        worker = _engine_of(outlast)._worker  # pyright: ignore[reportPrivateUsage]
        plain = worker.expect

        def expect(made: Work) -> WorkerId:
            name = plain(made)
            most.append(worker.busy_turns)
            return name

        monkeypatch.setattr(worker, "expect", expect)
        work.may_end.set()
        for each in sessions:
            await told(each, "turn.completed", 2)
    assert most
    assert max(most) <= 2


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
async def test_a_turn_that_was_not_made_after_all_keeps_no_place(postgres_url: str, tmp_path: Path, store: str) -> None:
    """D13, P1: with one place, whoever comes next has it, whatever still holds on to the failed transaction."""
    kept: list[Unit] = []
    url = postgres_url if store == "postgresql" else str(tmp_path / "app.db")
    async with runtime(url, tmp_path, Digging(), max_turns_per_worker=1) as outlast:
        session = await outlast.sessions.create()

        def fail(unit: Unit) -> None:
            kept.append(unit)
            inbox.notify(unit, session.id, InputKind.WAKE, "Look.")
            raise ValueError("not after all")

        with pytest.raises(ValueError, match="not after all"):
            await outlast.database.transaction(fail, name="fail")
        assert kept[0].expected
        assert (await (await session.send("Hold.", when_busy="queue")).turn()).id
        await told(session, "call.started", 1)


async def test_a_turn_that_is_claimed_while_its_worker_leaves_is_left_to_the_next(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P2, P5: it is not run to its end first, however long that takes."""
    work, closing = Digging(), asyncio.Event()
    outlast = runtime(postgres_url, tmp_path, work, drain=timedelta(seconds=30))
    async with outlast:
        session = await outlast.sessions.create()
        await (await session.send("Dig.")).outcome(wait=30)
        engine, asked = _engine_of(outlast), len(await events_of(session, "response.completed"))
        plain, reached = engine._worker.leave, asyncio.Event()  # pyright: ignore[reportPrivateUsage]

        def leave() -> None:
            plain()
            closing.set()

        def hold(name: str, moment: Moment) -> Any:
            if (name, moment) != ("task.end", "before"):
                return None
            reached.set()
            return closing.wait()

        monkeypatch.setattr(engine._worker, "leave", leave)  # pyright: ignore[reportPrivateUsage]
        outlast.database.watcher = hold
        work.may_end.set()
        await reached.wait()
    async with runtime(postgres_url, tmp_path, Digging()) as outlast:
        session = await outlast.sessions.get(session.id)
        await told(session, "turn.completed", 2)
        types = await event_types(session)
        assert len(await events_of(session, "response.completed")) == asked + 1
        assert types.index("turn.resumed") < len(types) - types[::-1].index("response.completed")
        (again,) = await events_of(session, "turn.resumed")
        assert again.data["attempt"] == 2


async def test_a_turn_runs_in_no_context_but_its_own(postgres_url: str, tmp_path: Path) -> None:
    """P7: what a tool of one session starts in another does not run as a part of that tool's call."""
    seen: list[object] = []

    async def poke() -> str:
        await other.resume()
        return "poked"

    def answer(messages: Sequence[ModelMessage]) -> Any:
        if "Poke." in str(messages):
            return call("poke") if len(messages) == 1 else "Poked."
        seen.append(current_call.get())
        return "Done."

    agent = Agent(ScriptedModel(answer), name="agent", tools=[poke])
    settings = Settings(files=str(tmp_path / "files"), **FAST)
    async with Outlast(agent, database=postgres_url, settings=settings) as outlast:
        other = await outlast.sessions.create()
        await outlast.pause()
        await other.send("Hello.")
        await other.stop()
        await outlast.database.transaction(lambda unit: _left_waiting(unit, other.id), name="left waiting")
        await outlast.unpause()
        await (await (await outlast.sessions.create()).send("Poke.")).outcome(wait=30)
        await told(other, "turn.completed", 1)
    assert seen == [None]


def _left_waiting(unit: Unit, session_id: SessionId) -> None:
    inbox.notify(unit, session_id, InputKind.SETTLEMENT, "It worked.")


async def test_a_stop_that_comes_before_the_claim_is_known_here_stops_the_turn(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: others see the commit before its answer is here, and their signal finds nobody who listens."""
    work = Digging()

    def deps(context: TurnContext) -> AbstractAsyncContextManager[None]:
        return hanging_deps(context) if work.may_end.is_set() else nullcontext()

    wait_only_for_signals(monkeypatch)
    held = hold_sequels(monkeypatch)
    elsewhere = runtime(postgres_url, tmp_path, Digging(), run_work=False)
    async with runtime(postgres_url, tmp_path, work, deps) as outlast, elsewhere, asyncio.timeout(60):
        session = await outlast.sessions.create()
        await (await session.send("Dig.")).outcome(wait=30)
        work.may_end.set()
        begin = await held.get()
        stopping = asyncio.create_task((await elsewhere.sessions.get(session.id)).stop())
        await told(session, "session.held", 1)
        begin()
        await stopping
        assert len(await events_of(session, "turn.stopped")) == 1


async def test_an_interrupting_message_is_not_for_the_turn_that_it_stops(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1, B2: the turn that comes after it answers, also when the stopped one had just begun."""
    work = Digging()

    def unseen(self: Attempt) -> None:
        """The stop is noticed as late as can be."""

    monkeypatch.setattr(Attempt, "look", unseen)
    async with runtime(postgres_url, tmp_path, work) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Dig.")).outcome(wait=30)
        with monkeypatch.context() as patch:
            held = hold_sequels(patch)
            work.may_end.set()
            begin = await held.get()
            await session.send("No, this.", when_busy="interrupt")
        begin()
        await told(session, "turn.completed", 2)
        (stopped,) = await events_of(session, "turn.stopped")
        delivered = await events_of(session, "input.delivered")
        assert len(delivered) == 3
        assert stopped.turn_id not in [each.turn_id for each in delivered]


def _engine_of(outlast: Outlast[Any, Any]) -> DistributedEngine:
    database: Any = outlast.database
    engine: DistributedEngine = database._outbox.engine
    return engine
