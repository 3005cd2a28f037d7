"""What no living worker has the agent for waits, and says so, until somebody starts one (DESIGN 8)."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent

from outlast import Client, ids
from outlast.cli.verbs import doctor
from outlast.ids import SessionId
from outlast.store import urls
from outlast.store.postgres.connection import connect
from outlast.store.repositories.agents import encode, lock_key
from outlast.store.repositories.stored_task import NewTask
from outlast.store.unit import Unit
from outlast.testing import ScriptedModel
from outlast.transitions.tasks import task_moves
from tests.support.network.server import client_of, serving
from tests.support.turns.runtime import Runtime, event_types

SPEC: dict[str, Any] = {"args": {}}


@dataclass(frozen=True)
class Seen:
    """How a worker looks from outside."""

    connected: bool
    silent: float


@asynccontextmanager
async def row_of(url: str, agent: str, seen: Seen) -> AsyncGenerator[None]:
    """What a worker process has in the database: its row, and while it lives the lock of its name."""
    worker_id = ids.worker_id()
    held = await connect(urls.parse(url), name="worker", when_closed=lambda: None)
    try:
        if seen.connected:
            await held.execute("SELECT pg_advisory_lock($1)", lock_key(worker_id))
        await held.execute(
            "INSERT INTO workers (id, host, pid, agents, started_at, seen_at) "
            "SELECT $1, 'elsewhere', 1, $2, at, at FROM "
            "(SELECT ((extract(epoch FROM clock_timestamp()) - $3::float8) * 1000000)::bigint AS at) AS times",
            worker_id,
            encode([agent]),
            seen.silent,
        )
        yield
        await held.execute("DELETE FROM workers WHERE id = $1", worker_id)
    finally:
        await held.close()


async def findings(client: Client) -> list[doctor.Finding]:
    return [each async for each in doctor._findings(client)]  # pyright: ignore[reportPrivateUsage]


def named(name: str, *tools: Callable[[], str]) -> Agent[None, str]:
    return Agent(ScriptedModel(lambda _: f"{name} heard you."), name=name, tools=tools)


@pytest.fixture
def runtime(ready_postgres_url: str, tmp_path: Path) -> Runtime:
    return Runtime(ready_postgres_url, files=str(tmp_path / "files"))


async def test_a_turn_that_nobody_can_run_says_which_agent_it_waits_for(runtime: Runtime) -> None:
    """DESIGN 8, P4: over HTTP, in lists and for `doctor`; a worker with another agent changes nothing."""
    async with (
        AsyncExitStack() as workers,
        serving(runtime(agent=named("pilot"), run_work=False)) as server,
        client_of(server) as ada,
    ):
        session = await ada.sessions.create()
        assert session.no_worker_for is None, "nothing waits yet"
        sent = await session.send("Fly.")
        assert (await session.refresh()).no_worker_for == "pilot"
        await workers.enter_async_context(runtime(agent=named("cook")))
        assert [each.no_worker_for for each in await ada.sessions.list()] == ["pilot"]
        await workers.enter_async_context(runtime(agent=named("pilot")))
        assert (await sent.outcome(wait=30)).text == "pilot heard you."
        assert (await session.refresh()).no_worker_for is None


async def test_a_task_that_nobody_can_run_says_which_agent_it_waits_for(runtime: Runtime) -> None:
    """DESIGN 8, P4: its tool may run again, and only a worker with its agent has that tool."""

    def fly() -> str:
        return "flown"

    def left_behind(unit: Unit, session_id: SessionId) -> None:
        new = NewTask(
            ids.task_id(), title="fly", call_id="c1", agent="pilot", tool="fly", spec=SPEC, may_run_again=True
        )
        task = task_moves.make(unit, session_id, new, worker_id=ids.worker_id())
        task_moves.orphaned(unit, task)

    accepting = runtime(agent=named("pilot"), run_work=False)
    async with AsyncExitStack() as workers, serving(accepting) as server, client_of(server) as ada:
        session_id = SessionId((await ada.sessions.create()).id)
        await accepting.database.transaction(lambda unit: left_behind(unit, session_id), name="left behind")
        (task,) = await ada.tasks.list()
        assert (task.state, task.no_worker_for) == ("queued", "pilot")
        await workers.enter_async_context(runtime(agent=named("cook")))
        assert (await ada.tasks.get(task.id)).no_worker_for == "pilot"
        (found,) = [each async for each in doctor._findings(ada) if each.id == task.id]  # pyright: ignore[reportPrivateUsage]
        assert "no worker has its agent 'pilot'" in found.problem
        await workers.enter_async_context(runtime(agent=named("pilot", fly)))
        ended = await ada.tasks.wait(task.id, seconds=30)
        assert (ended.state, ended.result, ended.no_worker_for) == ("succeeded", "flown", None)


async def test_with_all_workers_dead_everything_says_so(runtime: Runtime) -> None:
    """DESIGN 8, I2, I3: their rows stay, for nobody is there to remove them; who was seen counts, not who is listed."""
    accepting = runtime(agent=named("pilot"), run_work=False)
    async with serving(accepting) as server, client_of(server) as ada:
        (first, *_) = await findings(ada)
        assert (first.id, "0 workers alive" in first.problem) == ("server", True), "nobody ever came"
        session = await ada.sessions.create()
        sent = await session.send("Fly.")
        for seen in (
            Seen(connected=False, silent=60),
            Seen(connected=True, silent=60),
            Seen(connected=False, silent=5),
        ):
            async with row_of(str(runtime.database), "pilot", seen):
                assert (await session.refresh()).no_worker_for == "pilot"
                assert (await sent.outcome(wait=0)).no_worker_for == "pilot"
                answer = await (await server.client()).get("/readyz")
                assert (answer.status_code, answer.json()["code"]) == (503, "no_workers")
                (first, *rest) = await findings(ada)
                assert (first.id, "0 workers alive" in first.problem) == ("server", True)
                assert [each.problem for each in rest] == ["no worker has its agent 'pilot'"]
        for seen in (Seen(connected=True, silent=0), Seen(connected=False, silent=1)):
            async with row_of(str(runtime.database), "pilot", seen):
                assert (await session.refresh()).no_worker_for is None
                assert (await (await server.client()).get("/readyz")).json() == {"status": "ready", "workers": 1}


async def test_a_worker_that_leaves_is_no_longer_counted(runtime: Runtime) -> None:
    """DESIGN 8: it is about the living."""
    async with runtime(agent=named("pilot"), run_work=False) as accepting:
        session = await accepting.sessions.create()
        async with runtime(agent=named("pilot")):
            assert (await session.ask("Fly.")).text == "pilot heard you."
        await session.send("Again.")
        assert (await session.refresh()).no_worker_for == "pilot"


async def test_a_file_whose_agent_was_renamed_keeps_its_turns(tmp_path: Path) -> None:
    """P1, P4: the embedded engine does not claim what it cannot run; with the agent back, it goes on."""
    runtime = Runtime(tmp_path / "app.db")
    async with runtime(agent=named("pilot")) as outlast:
        session = await outlast.sessions.create()
        await outlast.pause(by="test")
        await session.send("Fly.")
    async with runtime(agent=named("captain")) as outlast:
        await outlast.unpause()
        found = await outlast.sessions.get(session.id)
        assert (found.state, found.no_worker_for) == ("queued", "pilot")
        await found.send("Land.", when_busy="queue")
    async with runtime(agent=named("pilot")) as outlast:
        found = await outlast.sessions.get(session.id)
        outcome = await found.settled(wait=30)
        assert outcome is not None
        assert outcome.text == "pilot heard you."
        types = await event_types(found)
        assert types.count("turn.completed") == 2
        assert "turn.failed" not in types
        assert (await found.refresh()).no_worker_for is None
