"""A process that dies under parked calls: real processes, killed with SIGKILL, and what the next one makes of it."""

import signal
from asyncio import to_thread
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from outlast import Outlast, Session, Task
from outlast.store import tables
from outlast.store.repositories import outputs, tasks
from outlast.store.repositories.outputs import HEAD, TAIL, Piece
from outlast.wire.task_state import TaskState
from tests.support.crashes import child
from tests.support.crashes.parking_child import LINE, PRINTED, Scene, agent_of
from tests.support.logs.histories import check_history, return_of
from tests.support.stores.store import opened
from tests.support.turns.background import only_task, wakes_seen, woken_turns
from tests.support.turns.runtime import events_of

pytestmark = pytest.mark.timeout(180)
"""Each test starts several interpreters, one after the other."""

KILLED = -signal.SIGKILL
MOST_GROWTH = 60 * 1024 * 1024


async def run_child(folder: Path, scene: str) -> int:
    """Run it to its end; gives its exit code."""
    log = folder / "child.log"
    code = await to_thread(child.run, "tests.support.crashes.parking_child", str(folder), scene, log=log)
    assert code in (0, KILLED), log.read_text()
    return code


@asynccontextmanager
async def what_stands(folder: Path, scene: str) -> AsyncGenerator[tuple[Outlast[None, str], Session, Task]]:
    """The database opened in this process, once nothing is open any more."""
    async with Outlast(agent_of(Scene(folder, scene)), database=folder / "app.db") as outlast:
        (session,) = await outlast.sessions.list()
        await session.settled()
        yield outlast, session, await only_task(session)


def keys(folder: Path) -> list[str]:
    """One idempotency key for each run of the tool."""
    return (folder / "runs").read_text().splitlines()


async def test_work_that_may_not_repeat_is_told_as_interrupted(tmp_path: Path) -> None:
    """B10, P2, P3: killed between the tool's end and its commit; never run again, told once."""
    assert await run_child(tmp_path, "once") == KILLED
    assert await run_child(tmp_path, "once") == 0
    async with what_stands(tmp_path, "once") as (_, session, task):
        assert len(keys(tmp_path)) == 1
        assert task.error is not None
        assert (task.state, task.error["kind"], task.attempt) == (TaskState.FAILED, "interrupted", 1)
        (wake,) = await wakes_seen(session)
        assert "may or may not have taken effect" in wake
        assert await woken_turns(session) == 1
        assert len(await events_of(session, "task.ended")) == 1
        check_history(await session.history())


async def test_work_that_may_repeat_is_run_again(tmp_path: Path) -> None:
    """B10, A1: the same task and key, attempt 2, output kept and marked; told once."""
    assert await run_child(tmp_path, "repeatable") == KILLED
    assert await run_child(tmp_path, "repeatable") == 0
    async with what_stands(tmp_path, "repeatable") as (outlast, session, task):
        first, second = keys(tmp_path)
        assert first == second
        assert (task.state, task.result, task.attempt) == (TaskState.SUCCEEDED, "done in run 2", 2)
        assert task.id in str(return_of("c1", await session.history()).content)
        said = (await outlast.tasks.output(task.id)).text
        assert said.startswith("run 1\n")
        assert said.endswith("run 2\n")
        assert "attempt 2" in said
        assert await woken_turns(session) == 1
        assert len(await wakes_seen(session)) == 1


async def test_work_that_kills_its_process_is_given_up(tmp_path: Path) -> None:
    """B10: three attempts, then `crash_loop`, told once."""
    for _ in range(3):
        assert await run_child(tmp_path, "deadly") == KILLED
    async with what_stands(tmp_path, "deadly") as (_, session, task):
        assert task.error is not None
        assert (task.state, task.error["kind"], task.attempt) == (TaskState.FAILED, "crash_loop", 3)
        assert len(keys(tmp_path)) == 3
        assert len(set(keys(tmp_path))) == 1
        assert len(await wakes_seen(session)) == 1


async def wake_states(folder: Path) -> list[str]:
    """Read from the file alone: no work is started."""
    query = sa.select(tables.inputs.c.state).where(tables.inputs.c.kind == "wake")
    async with opened(f"sqlite:///{folder / 'app.db'}") as database:
        return await database.read(lambda connection: list(connection.execute(query).scalars()))


async def test_an_answer_that_was_not_committed_tells_two_ends_once(tmp_path: Path) -> None:
    """P3, B7: killed inside the commit of what check_background told; it is asked again, and no wake comes."""
    assert await run_child(tmp_path, "checked") == KILLED
    assert await wake_states(tmp_path) == ["waiting", "waiting"], "the ends are committed, their news is not told"
    assert await run_child(tmp_path, "checked") == 0
    assert await wake_states(tmp_path) == ["withdrawn", "withdrawn"]
    assert sorted(keys(tmp_path)) == ["Elbe", "Oder"], "each ran once"
    async with Outlast(agent_of(Scene(tmp_path, "checked")), database=tmp_path / "app.db") as outlast:
        (session,) = await outlast.sessions.list()
        await session.settled()
        answer: Any = return_of("q0", await session.history()).content
        assert [each["result"] for each in answer["tasks"]] == ["Elbe is high", "Oder is high"]
        assert (await wakes_seen(session), await woken_turns(session)) == ([], 0)
        assert len(await events_of(session, "task.ended")) == 2
        check_history(await session.history())


async def stored_output(folder: Path) -> tuple[Piece, Piece, Piece]:
    """Head, the first piece after what was cut, and the end: read from the file alone, no work is started."""
    async with opened(f"sqlite:///{folder / 'app.db'}") as database:

        def read(connection: sa.Connection) -> tuple[Piece, Piece, Piece]:
            (task,) = tasks.page(connection)
            assert task.call_id is not None
            head = outputs.read(connection, task.session_id, task.call_id, length=PRINTED)
            after = outputs.read(connection, task.session_id, task.call_id, offset=head.next_offset, length=PRINTED)
            end = outputs.read(connection, task.session_id, task.call_id, offset=head.total - len(LINE))
            return head, after, end

        return await database.read(read)


def check_output(head: Piece, after: Piece, end: Piece) -> None:
    """Both ends are there, contiguous, at their true places; what lies between is said to be cut."""
    assert head.offset == 0
    assert HEAD <= len(head.text) < HEAD + TAIL
    assert head.text.startswith(LINE)
    assert after.cut == after.offset - head.next_offset > 0
    assert len(after.text) >= TAIL - len(LINE)
    assert after.next_offset == after.total == head.total
    assert end.text.endswith("x\n")


async def test_fifty_megabytes_of_output_survive_a_kill_in_their_middle(tmp_path: Path) -> None:
    """A3, B10, P1: head and tail are kept, what was cut is said, and memory stays flat."""
    assert await run_child(tmp_path, "printer") == KILLED
    killed = await stored_output(tmp_path)
    check_output(*killed)
    assert killed[0].total <= PRINTED // 2 + 2 * len(LINE)
    assert await run_child(tmp_path, "printer") == 0
    whole = await stored_output(tmp_path)
    check_output(*whole)
    assert whole[0].text == killed[0].text, "the head is that of the first attempt"
    assert whole[0].total > killed[0].total + PRINTED
    assert int((tmp_path / "growth").read_text()) < MOST_GROWTH
    async with what_stands(tmp_path, "printer") as (outlast, session, task):
        assert (task.state, task.attempt) == (TaskState.SUCCEEDED, 2)
        assert (await outlast.tasks.output(task.id, offset=HEAD + TAIL, length=10)).cut > 0
        assert len(await wakes_seen(session)) == 1
