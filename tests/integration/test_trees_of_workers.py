"""A tree of sub-sessions over several workers: cancelled from its top, and gone on with when a worker is killed."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from outlast import Outlast, Session, Task
from outlast.store.repositories import family
from outlast.wire.task_state import TaskState
from tests.support.apps import tree_app
from tests.support.processes.worker_process import Workers, until, workers_of
from tests.support.turns.background import wakes_seen
from tests.support.turns.runtime import events_of, wait_for_event

pytestmark = pytest.mark.timeout(180)  # several interpreters start, on machines that may be busy
PATIENCE = 60.0


@pytest.fixture
async def workers(postgres_url: str, tmp_path: Path) -> AsyncIterator[Workers]:
    async with workers_of(postgres_url, tmp_path, "tests.support.apps.tree_app:app") as found:
        yield found


@pytest.fixture
async def outlast(workers: Workers) -> AsyncIterator[Outlast[Any, Any]]:
    """This process accepts and reads; it runs nothing."""
    async with tree_app.make(workers.database, run_work=False, files=str(workers.folder / "files")) as runtime:
        yield runtime


async def sessions_below(outlast: Outlast[Any, Any], session: Session) -> Sequence[Session]:
    """The deepest first."""
    found = await outlast.database.read(lambda connection: family.below(connection, session.id))
    return [await outlast.sessions.get(each) for each in found]


async def only_task(session: Session) -> Task:
    (task,) = await session.tasks()
    return task


def members(group: int) -> list[psutil.Process]:
    """The processes of a group that run."""
    return [each for each in psutil.process_iter() if _is_of(each, group)]


def _is_of(process: psutil.Process, group: int) -> bool:
    try:
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False


async def test_cancel_at_the_top_leaves_nothing_running_anywhere(workers: Workers, outlast: Outlast[Any, Any]) -> None:
    """C3, B6, cancel: three levels over two workers, a shell command at the bottom; all ended, all told, none left."""
    await workers.start()
    await workers.start()
    session = await outlast.sessions.create()
    await (await session.send("shell 1")).outcome(wait=PATIENCE)
    said = workers.folder / "shell"
    await until(lambda: said.exists() and said.read_text().strip() != "")
    group = int(said.read_text())
    await until(lambda: len(members(group)) >= 2)  # the shell, and what it has started
    top, below = await only_task(session), await sessions_below(outlast, session)
    assert len(below) == 2
    await wait_for_event(below[0], "task.created")  # the command is parked

    canceled = await outlast.tasks.cancel(top.id, wait=PATIENCE)

    assert canceled.state is TaskState.CANCELED
    for each in below:
        task = await outlast.tasks.wait((await only_task(each)).id, seconds=PATIENCE)
        assert task.state is TaskState.CANCELED
        assert len(await events_of(each, "task.ended")) == 1
    await until(lambda: not members(group))
    await session.settled(wait=PATIENCE)
    (told,) = await wakes_seen(session)
    assert "was canceled" in told
    assert [(await each.refresh()).turn_id for each in (session, *below)] == [None, None, None]


async def test_a_tree_goes_on_elsewhere_when_a_worker_is_killed(workers: Workers, outlast: Outlast[Any, Any]) -> None:
    """C1, C2, kill: its parents wait in their turns; each work has one session, and each answer is told once."""
    processes = [await workers.start() for _ in range(2)]
    session = await outlast.sessions.create()
    sent = await session.send("probe 1")
    await until(lambda: len(workers.effects("probe.began")) == 1)
    (running,) = [each for each in processes if each.pid in workers.effects("probe.began")]

    await workers.kill(running)
    await until(lambda: len(workers.effects("probe.began")) == 2)
    workers.open_gate()
    outcome = await sent.outcome(wait=PATIENCE)

    assert outcome.state == "completed"
    assert "probe 3 has gold" in outcome.text
    assert len(workers.effects("probe.ended")) == 1
    below = await sessions_below(outlast, session)
    assert len(below) == 2
    for each in (session, below[1]):
        task = await only_task(each)
        assert (task.state, task.kind) == (TaskState.SUCCEEDED, "session")
        assert len(await events_of(each, "task.created")) == len(await events_of(each, "task.ended")) == 1
        ended = [event for event in await events_of(each, "call.ended") if event.data["tool"] == "run_sub_session"]
        assert [event.data["outcome"] for event in ended] == ["success"]
        assert await wakes_seen(each) == []
    for each in below:
        delivered = await events_of(each, "input.delivered")
        assert [event.data["kind"] for event in delivered] == ["message"]


async def test_two_levels_of_one_worker_go_on_after_all_workers_were_gone(
    workers: Workers, outlast: Outlast[Any, Any]
) -> None:
    """C1, C2, kill: nobody is there for a while; the next worker finds every level of the tree as it was."""
    only = await workers.start()
    session = await outlast.sessions.create()
    sent = await session.send("probe 1")
    await until(lambda: len(workers.effects("probe.began")) == 1)
    await workers.kill(only)
    workers.open_gate()
    await asyncio.gather(*(workers.start() for _ in range(2)))
    outcome = await sent.outcome(wait=PATIENCE)
    assert "probe 3 has gold" in outcome.text
    assert len(await sessions_below(outlast, session)) == 2
