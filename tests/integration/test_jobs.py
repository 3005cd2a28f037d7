"""Jobs and state in one commit: on PostgreSQL a turn is started by a job, and by nothing else."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
import sqlalchemy as sa
from pgqueuer.queries import Queries
from pydantic_ai import Agent
from pydantic_core import from_json
from sqlalchemy.util import await_only

from outlast import Outlast, Settings
from outlast.duties import duty
from outlast.engines import job_consumer
from outlast.ids import SessionId, TurnId, WorkerId
from outlast.runs import worker
from outlast.runs.turns.attempt import Attempt
from outlast.runs.worker_parts import WorkerParts
from outlast.store import urls
from outlast.store.database import Moment
from outlast.store.outbox import Work
from outlast.store.postgres.connection import connect
from outlast.store.postgres.database import PostgresDatabase
from outlast.store.postgres.jobs import CHANNEL, manager_of, queries
from outlast.store.repositories import turns, workers
from outlast.store.repositories.turns import TurnRow
from outlast.store.unit import Unit
from outlast.testing import ScriptedModel, call, text
from outlast.transitions import turn
from outlast.transitions.turns import inbox
from tests.support.turns.runtime import FAST, event_types, events_of


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


async def test_workers_are_woken_by_new_jobs_and_not_by_done_ones(ready_postgres_url: str) -> None:
    """K5: each of many workers asks the queue when it is woken, and nothing is there because a job is done."""
    heard: asyncio.Queue[Any] = asyncio.Queue()
    async with listening(ready_postgres_url, heard) as queue:
        done = await queue.enqueue("outlast:agent", b"trn_1")
        first = await heard.get()
        await queue.driver.execute("DELETE FROM outlast_pgqueuer WHERE id = ANY($1)", done)
        await queue.enqueue("outlast:agent", b"trn_2")
        second = await heard.get()
    assert [from_json(each)["operation"] for each in (first, second)] == ["insert", "insert"]


@asynccontextmanager
async def listening(url: str, heard: asyncio.Queue[Any]) -> AsyncGenerator[Queries]:
    """PgQueuer with our names, and what its listener is told."""
    connection = await connect(urls.parse(url), name="test", when_closed=lambda: None)
    try:
        found = queries(connection)
        await found.driver.add_listener(CHANNEL, heard.put_nowait)
        yield found
    finally:
        await connection.close()


async def test_a_transaction_that_is_rolled_back_leaves_no_job(postgres_url: str, tmp_path: Path) -> None:
    """P1: neither row nor job; a job without its row would start nothing, a row without its job would never start."""

    async with runtime(postgres_url, tmp_path / "files", ScriptedModel(["Hello."])) as outlast:
        session = await outlast.sessions.create()

        def change_of_mind(unit: Unit) -> None:
            inbox.accept(unit, SessionId(session.id), "hello", owner_id="local")
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


async def test_one_owners_many_turns_do_not_keep_another_owner_waiting(postgres_url: str, tmp_path: Path) -> None:
    """DESIGN 8: with one place left, the first turn of one owner comes before the third of another."""
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def hold() -> str:
        begun.set()
        await may_end.wait()
        return "held"

    model = ScriptedModel([call("hold"), *(f"Answer {at}." for at in range(6))])
    settings = Settings(files=str(tmp_path / "files"), **FAST, max_turns_per_worker=1)
    agent = Agent(model, name="agent", tools=[hold])
    async with Outlast(agent, database=postgres_url, settings=settings) as outlast:
        many = [await outlast.owned_by("ada").create() for _ in range(4)]
        single = await outlast.owned_by("bob").create()
        turns = [await many[0].send("hello")]
        await begun.wait()
        turns += [await each.send("hello") for each in (*many[1:], single)]
        may_end.set()
        outcomes = [await each.outcome(wait=30) for each in turns]
        assert [each.text for each in outcomes] == [f"Answer {at}." for at in (0, 2, 3, 4, 1)]


async def test_a_worker_takes_only_what_it_has_the_agent_for(postgres_url: str, tmp_path: Path) -> None:
    """DESIGN 8: what nobody has waits, and is not lost."""
    folder = tmp_path / "files"

    def named(name: str, answer: str, **settings: Any) -> Outlast[Any, Any]:
        chosen = Settings(files=str(folder), **{**FAST, **settings})
        return Outlast(Agent(ScriptedModel([answer]), name=name), database=postgres_url, settings=chosen)

    async with named("river", "", run_work=False) as accepting:
        session = await accepting.sessions.create()
        turn = await session.send("hello")
        async with named("sea", "I am the sea.") as other:
            theirs = await other.sessions.create()
            assert (await (await theirs.send("hello")).outcome(wait=30)).text == "I am the sea."
        waiting = await turn.outcome(wait=0)
        assert (waiting.state, waiting.no_worker_for) == ("queued", "river")
        async with named("river", "I am the river."):
            assert (await turn.outcome(wait=30)).text == "I am the river."


async def test_a_turn_whose_job_is_gone_is_found(postgres_url: str, tmp_path: Path) -> None:
    """P1: the queue's rows are hints; accepted work is in ours."""
    async with accepting_only(postgres_url, tmp_path) as outlast:
        session = await outlast.sessions.create()
        turn = await session.send("hello")
        await execute(outlast, "DELETE FROM outlast_pgqueuer")
        async with runtime(postgres_url, tmp_path / "files", ScriptedModel(["Hello."])):
            assert (await turn.outcome(wait=30)).text == "Hello."


async def test_a_turn_is_found_whose_attempt_broke_down_here(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: and which could not be given back either, although its worker lives on."""
    run, is_broken = Attempt.run, asyncio.Event()

    async def break_down(self: Attempt) -> None:
        if not is_broken.is_set():
            raise RuntimeError("a fault of our own")
        await run(self)

    async def cannot(self: worker.Worker, fence: turn.Fence, *, has_crashed: bool) -> bool:
        is_broken.set()
        raise RuntimeError("and another one")

    monkeypatch.setattr(duty, "EVERY", timedelta(seconds=0.05))
    monkeypatch.setattr(Attempt, "run", break_down)
    monkeypatch.setattr(worker.Worker, "_give_back", cannot)
    async with runtime(postgres_url, tmp_path / "files", ScriptedModel(["Found."])) as outlast:
        session = await outlast.sessions.create()
        outcome = await (await session.send("Hello.")).outcome(wait=30)
        assert (outcome.state, outcome.text) == ("completed", "Found.")
        assert is_broken.is_set()


async def test_a_turn_whose_claim_is_not_known_here_yet_is_not_given_back(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P5: the answer to its commit may come late."""
    commit, look = PostgresDatabase.transaction, turns.running_under
    may_know, looks = asyncio.Event(), list[int]()

    async def late(self: PostgresDatabase, fn: Any, *, name: str) -> Any:
        answer = await commit(self, fn, name=name)
        if name == "claim":
            await may_know.wait()
        return answer

    def counted(connection: sa.Connection, worker_id: WorkerId) -> list[TurnRow]:
        found = look(connection, worker_id)
        looks.extend([1] * len(found))
        if len(looks) >= 3:
            may_know.set()
        return found

    monkeypatch.setattr(duty, "EVERY", timedelta(seconds=0.01))
    monkeypatch.setattr(turns, "running_under", counted)
    monkeypatch.setattr(PostgresDatabase, "transaction", late)
    async with runtime(postgres_url, tmp_path / "files", ScriptedModel(["Here."])) as outlast:
        session = await outlast.sessions.create()
        assert (await (await session.send("Hello.")).outcome(wait=30)).text == "Here."
        assert "turn.resumed" not in await event_types(session)


async def test_what_a_dead_worker_took_and_did_not_claim_is_taken_by_another(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN 8: whoever removes its row also gives back its jobs, and says so: nobody waits for the next look."""
    monkeypatch.setattr(job_consumer, "_POLL", timedelta(minutes=5))
    dead = WorkerId("wrk_dead")
    async with accepting_only(postgres_url, tmp_path) as outlast:
        session = await outlast.sessions.create()
        turn = await session.send("hello")
        await execute(
            outlast,
            # Its heartbeat stays fresh: the queue by itself would not give it to anyone.
            "UPDATE outlast_pgqueuer SET status = 'picked', heartbeat = now() + interval '1 hour', "
            "queue_manager_id = :m",
            m=manager_of(dead),
        )
        await execute(
            outlast,
            "INSERT INTO workers (id, host, pid, started_at, seen_at) VALUES (:id, 'gone', 1, 0, "
            "(extract(epoch FROM now()) * 1000000)::bigint)",
            id=dead,
        )
        async with runtime(postgres_url, tmp_path / "files", ScriptedModel(["Hello."])):
            assert (await turn.outcome(wait=30)).text == "Hello."


async def test_all_that_a_dead_worker_left_is_given_back_once(postgres_url: str, tmp_path: Path) -> None:
    """P5: more than goes into one commit, by two sweeps at once: each turn goes on once, and none waits for a ring."""
    dead = WorkerId("wrk_dead")
    async with accepting_only(postgres_url, tmp_path) as outlast:
        sessions = [await outlast.owned_by(f"owner {at % 5}").create() for at in range(25)]
        sent = [await each.send("hello") for each in sessions]
        for each in sent:
            assert each.turn_id is not None
            await outlast.database.transaction(
                lambda unit, turn_id=each.turn_id: turn.claim(unit, TurnId(turn_id), dead), name="claim"
            )
        await execute(outlast, "DELETE FROM outlast_pgqueuer")
        model = ScriptedModel(lambda messages: "Hello.")
        async with (
            runtime(postgres_url, tmp_path / "files", model),
            runtime(postgres_url, tmp_path / "files", model),
        ):
            outcomes = await asyncio.gather(*(each.outcome(wait=60) for each in sent))
        assert {(each.state, each.text) for each in outcomes} == {("completed", "Hello.")}
        told = await asyncio.gather(*(event_types(each) for each in sessions))
        assert [types.count("turn.resumed") for types in told] == [1] * 25


async def test_the_dead_are_found_by_a_worker_whose_connections_are_all_in_use(
    postgres_url: str, tmp_path: Path
) -> None:
    """P4: whoever has much to do finds them as soon as whoever has nothing: what they left must not wait for that."""
    may_end = asyncio.Event()
    settings = Settings(files=str(tmp_path / "files"), **FAST, database_connections=2)
    living = Outlast(Agent(ScriptedModel([]), name="agent"), database=postgres_url, settings=settings)
    async with accepting_only(postgres_url, tmp_path) as outlast, living:
        begun = [asyncio.Event(), asyncio.Event()]

        def hold(unit: Unit, has_begun: asyncio.Event) -> None:
            has_begun.set()
            await_only(may_end.wait())

        holding = [
            asyncio.create_task(living.database.transaction(lambda unit, each=each: hold(unit, each), name="hold"))
            for each in begun
        ]
        for each in begun:
            await each.wait()
        await execute(
            outlast,
            "INSERT INTO workers (id, host, pid, started_at, seen_at) VALUES ('wrk_dead', 'gone', 1, 0, "
            "(extract(epoch FROM now()) * 1000000)::bigint)",
        )
        async with asyncio.timeout(60):
            while len((await outlast.database.read(workers.roll)).sightings) > 1:  # noqa: ASYNC110 - in the database
                await asyncio.sleep(0.02)
        may_end.set()
        await asyncio.gather(*holding)


def accepting_only(url: str, folder: Path) -> Outlast[Any, Any]:
    settings = Settings(files=str(folder / "files"), **FAST, run_work=False)
    return Outlast(Agent(ScriptedModel([]), name="agent"), database=url, settings=settings)


async def execute(outlast: Outlast[Any, Any], statement: str, **values: Any) -> None:
    await outlast.database.transaction(lambda unit: unit.connection.execute(sa.text(statement), values), name="by hand")


async def test_turns_that_come_together_are_all_claimed_before_one_runs(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M7: whoever takes over from a dead worker shows at once, for each of its turns, that it goes on."""
    monkeypatch.setattr(worker, "_CLAIMS_FIRST_SECONDS", 60)
    order: list[str] = []
    both, first_waits_or_runs = asyncio.Event(), asyncio.Event()
    plain = worker.Worker.__init__

    class Awaited(asyncio.Event):
        async def wait(self) -> Literal[True]:
            first_waits_or_runs.set()
            return await super().wait()

    def begin(self: worker.Worker, parts: WorkerParts) -> None:
        plain(self, parts)
        monkeypatch.setattr(self, "_has_claimed", Awaited())

    monkeypatch.setattr(worker.Worker, "__init__", begin)

    async def claim_second() -> None:
        both.set()
        await first_waits_or_runs.wait()

    def watch(name: str, moment: Moment) -> Any:
        if name not in ("claim", "deliver"):
            return None
        order.append(f"{name} {moment}")
        if order[-1] == "deliver before":
            first_waits_or_runs.set()
        if order[-1] != "claim before":
            return None
        return claim_second() if order.count("claim before") == 2 else both.wait()

    async with runtime(postgres_url, tmp_path / "files", ScriptedModel(lambda _: "Done.")) as outlast:
        outlast.database.watcher = watch
        # Of two owners: the claim that is held up holds the line of its own.
        sent = [await (await outlast.owned_by(owner).create()).send("Go.") for owner in ("ada", "ben")]
        assert [(await each.outcome(wait=30)).text for each in sent] == ["Done.", "Done."]
    assert [each for each in order if each.endswith("after")] == ["claim after"] * 2 + ["deliver after"] * 2
    assert order[: order.index("deliver before")].count("claim after") == 2
