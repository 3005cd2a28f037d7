"""Caps and fairness: never more at once than may be, and no owner's thousand before another owner's one."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage

from outlast import Client, Outlast, Session, Settings, hints, ids
from outlast.cli.server_file import ServerFile
from outlast.errors import TooManyRequests
from outlast.ids import WorkerId
from outlast.limits import Limits
from outlast.store.repositories import sessions, tasks
from outlast.store.repositories.stored_task import NewTask
from outlast.store.repositories.tasks import Start
from outlast.store.unit import Unit
from outlast.testing import ScriptedModel, call, gate, last_user_text, text, tool_returns
from outlast.testing.step import Step
from outlast.transitions.tasks import task_moves
from outlast.transitions.turns import inbox
from outlast.wire.task_state import TaskState
from tests.support.moments.checkpoint import Checkpoint
from tests.support.moments.commits import HeldCommits
from tests.support.processes.serving_process import ROOT, Program
from tests.support.processes.worker_process import APP
from tests.support.stores.store import under
from tests.support.turns.runtime import FAST, Runtime

pytestmark = pytest.mark.timeout(180)  # two interpreters start, and a thousand turns, on machines that may be busy
PATIENCE = 120
THOUSAND = 1_000


class Pieces:
    """The work that is asked for, one tool call a piece: who began, how many at once, and when each may end."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.running = self.most = 0
        self._may_end = asyncio.Semaphore(0)
        self._changed = asyncio.Condition()

    async def work(self, name: str) -> str:
        async with self._changed:
            self.begun.append(name)
            self.running += 1
            self.most = max(self.most, self.running)
            self._changed.notify_all()
        try:
            await self._may_end.acquire()
        finally:
            self.running -= 1
        return f"{name} is done"

    def let_end(self, count: int) -> None:
        for _ in range(count):
            self._may_end.release()

    async def have_begun(self, count: int) -> list[str]:
        async with asyncio.timeout(PATIENCE), self._changed:
            await self._changed.wait_for(lambda: len(self.begun) >= count)
        return self.begun

    def agent(self, name: str = "agent") -> Agent[None, str]:
        tool = Tool(self.work, metadata=hints(read_only=True, budget=None))
        return Agent(ScriptedModel(_reply), tools=[tool], name=name)


def _reply(messages: list[ModelMessage]) -> Step:
    """A message names the piece it wants; anything else is heard."""
    asked = last_user_text(messages)
    if asked.startswith("work ") and not tool_returns(messages):
        return [call("work", name=asked.removeprefix("work "))]
    return ["Heard."]


def runtime(pieces: Pieces, database: str, folder: Path, **settings: Any) -> Outlast[Any, Any]:
    return Outlast(pieces.agent(), database=database, settings=chosen(folder, **settings))


def chosen(folder: Path, **settings: Any) -> Settings:
    settings = {**FAST, "files": str(folder / "files"), **settings}
    return Settings(**settings)


async def test_two_api_processes_that_submit_at_once_share_one_owners_caps(
    ready_postgres_url: str, tmp_path: Path
) -> None:
    """D13: two processes, one owner, twelve messages at the same time: three run, four wait, five are refused."""
    caps = {"max_turns_per_owner": 3, "max_queued_turns_per_owner": 4}
    environment = {
        "OUTLAST_TEST_DATABASE": ready_postgres_url,
        "OUTLAST_TEST_FOLDER": str(tmp_path),
        "OUTLAST_LOG_LEVEL": "warning",
        "PYTHONPATH": str(ROOT),
        **{f"OUTLAST_{name.upper()}": str(value) for name, value in caps.items()},
    }
    folders = [tmp_path / name for name in ("one", "two")]
    for each in folders:
        each.mkdir()
    command = ("serve", APP, "--no-worker", "--port", "0")
    pieces = Pieces()
    with Program(folders[0], *command, **environment) as one, Program(folders[1], *command, **environment) as two:
        async with Outlast(
            pieces.agent("shared"), database=ready_postgres_url, settings=chosen(tmp_path, **caps)
        ) as worker:
            made = [await worker.sessions.create() for _ in range(12)]
            for each in (one, two):
                await asyncio.to_thread(each.expect, "Outlast serves")
            async with client_of(folders[0]) as first, client_of(folders[1]) as second:

                async def send(at: int, session: Session) -> str:
                    there = await (first, second)[at % 2].sessions.get(session.id)
                    return (await there.send(f"work {at}")).input_id

                asked = [send(at, each) for at, each in enumerate(made)]
                answers = await asyncio.gather(*asked, return_exceptions=True)
                refused = [each for each in answers if isinstance(each, BaseException)]
                assert [type(each) for each in refused] == [TooManyRequests] * 5, refused
            await pieces.have_begun(3)
            pieces.let_end(len(made))
            accepted = [each for each, answer in zip(made, answers, strict=True) if isinstance(answer, str)]
            for each in accepted:
                outcome = await each.settled()
                assert outcome is not None
                assert outcome.state == "completed"
        assert (len(pieces.begun), pieces.most) == (7, 3)


def client_of(folder: Path) -> Client:
    [path] = folder.glob("*.server.json")
    place = ServerFile(path).read()
    assert place is not None
    return Client(place.url, place.token)


async def test_an_owners_thousand_turns_let_another_owners_one_start_next(database_url: str, tmp_path: Path) -> None:
    """D13, DESIGN 8: every place is taken and a thousand wait; the first that becomes free is the other owner's."""
    pieces = Pieces()
    limits = Limits(max_running_per_owner=8, max_queued_per_owner=THOUSAND)

    def submit(unit: Unit) -> None:
        for at in range(THOUSAND):
            session_id = ids.session_id()
            sessions.insert(unit, session_id, owner_id="ada", agent="agent", model=None, title=None, metadata={})
            inbox.accept(under(limits, unit), session_id, f"work ada {at}", owner_id="ada")

    async with runtime(pieces, database_url, tmp_path, max_turns_per_worker=4) as outlast:
        await outlast.database.transaction(submit, name="submit")
        await pieces.have_begun(4)
        await (await outlast.owned_by("bob").create()).send("work bob")
        pieces.let_end(1)
        begun = await pieces.have_begun(5)
        assert (sorted(begun[:4]), begun[4]) == ([f"ada {at}" for at in range(4)], "bob")
        assert pieces.most == 4


async def test_an_owners_thousand_tasks_delay_neither_a_turn_nor_another_owners_task(
    database_url: str, tmp_path: Path
) -> None:
    """B5, B10: their worker died and all of them are run again; a turn starts at once, the other's task comes next."""
    pieces = Pieces()
    settings = {"max_turns_per_worker": 4, "max_tasks_per_worker": 4}
    async with runtime(pieces, database_url, tmp_path, **settings) as outlast:
        await outlast.database.transaction(lambda unit: leave_behind(unit, "ada", THOUSAND), name="leave")
        await pieces.have_begun(4)
        session = await outlast.owned_by("bob").create()
        assert (await (await session.send("hello")).outcome(wait=PATIENCE)).text == "Heard."
        await outlast.database.transaction(lambda unit: leave_behind(unit, "bob", 1), name="leave")
        assert sorted(pieces.begun) == [f"ada {at}" for at in range(4)]
        pieces.let_end(1)
        begun = await pieces.have_begun(5)
        assert begun[4] == "bob 0"
        assert pieces.most == 4


def leave_behind(unit: Unit, owner: str, count: int) -> None:
    """Tasks of a worker that is dead; they may be run again."""
    session_id = ids.session_id()
    sessions.insert(unit, session_id, owner_id=owner, agent="agent", model=None, title=None, metadata={})
    session = unit.lock(session_id)
    for at in range(count):
        spec = {"args": {"name": f"{owner} {at}"}}
        new = NewTask(
            ids.task_id(),
            "work",
            agent="agent",
            call_id=f"call_{owner}_{at}",
            tool="work",
            spec=spec,
            may_run_again=True,
        )
        task = tasks.insert(unit, Start(session, new, TaskState.RUNNING, WorkerId("wrk_dead")))
        task_moves.orphaned(unit, task)


async def test_an_owners_turns_start_in_the_order_in_which_they_came(database_url: str, tmp_path: Path) -> None:
    """D13: one that waited for a place does not pass those that were given theirs before it."""
    pieces = Pieces()
    async with runtime(pieces, database_url, tmp_path, max_turns_per_worker=1, max_turns_per_owner=3) as outlast:
        made = [await outlast.sessions.create() for _ in range(8)]
        turns = [await each.send(f"work {at}") for at, each in enumerate(made)]
        pieces.let_end(len(made))
        for each in turns:
            assert (await each.outcome(wait=PATIENCE)).state == "completed"
    assert pieces.begun == [str(at) for at in range(8)]


async def test_a_place_is_not_lost_when_it_is_given_to_a_turn_that_is_stopped(
    ready_postgres_url: str, tmp_path: Path
) -> None:
    """D13, P6: one transaction gives it while the other ends the turn, as one that had none."""
    here = Checkpoint()

    def reply(messages: list[ModelMessage]) -> Step:
        return [gate(here), text("Done.")] if last_user_text(messages) == "first" else "Heard."

    runtime = Runtime(ready_postgres_url, files=str(tmp_path / "files"))
    async with runtime(ScriptedModel(reply), max_turns_per_owner=1) as outlast:
        one, two, three = [await outlast.sessions.create() for _ in range(3)]
        await one.send("first")
        await here.reached()
        await two.send("second")
        third = await three.send("third")
        commits = HeldCommits(outlast.database)
        commits.hold("turn.end")
        here.open()
        await commits.reached("turn.end")
        stopping = asyncio.create_task(two.stop())
        await asyncio.sleep(0.3)  # it waits for what the end of the first has locked
        commits.release("turn.end")
        await stopping
        assert (await third.outcome(wait=20)).text == "Heard."
