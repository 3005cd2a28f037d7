"""`outlast serve --workers N`: a server that only accepts, and the processes beside it that run the work."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from outlast import Outlast
from outlast.cli.server.supervisor import Supervisor
from tests.support.apps import shared_app
from tests.support.processes.worker_process import APP, Workers

pytestmark = pytest.mark.timeout(180)  # several interpreters start, on machines that may be busy
Process = asyncio.subprocess.Process


@pytest.fixture
async def outlast(postgres_url: str, tmp_path: Path) -> AsyncIterator[Outlast[Any, Any]]:
    async with shared_app.make(postgres_url, run_work=False, files=str(tmp_path / "files")) as runtime:
        yield runtime


@pytest.fixture
async def server(postgres_url: str, tmp_path: Path, outlast: Outlast[Any, Any]) -> AsyncIterator[Process]:
    command = (sys.executable, "-m", "outlast", "serve", APP, "--workers", "2", "--port", "0")
    with (tmp_path / "server.log").open("ab") as log:
        environment = Workers(postgres_url, tmp_path).environment
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, cwd=tmp_path, stderr=log, start_new_session=True
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await until(outlast, lambda found: not found)


async def workers(outlast: Outlast[Any, Any]) -> set[int]:
    pids = sa.text("SELECT pid FROM workers")
    return await outlast.database.read(lambda connection: set(connection.execute(pids).scalars()))


async def until(outlast: Outlast[Any, Any], holds: Callable[[set[int]], bool]) -> set[int]:
    async with asyncio.timeout(90):
        while not holds(found := await workers(outlast)):  # noqa: ASYNC110 - other processes write the rows
            await asyncio.sleep(0.05)
    return found


async def test_workers_are_started_again_and_leave_with_their_server(
    outlast: Outlast[Any, Any], server: Process
) -> None:
    """I5: one that is killed has a successor; a server that is killed leaves nobody behind."""
    first = await until(outlast, lambda found: len(found) == 2)
    assert server.pid not in first
    session = await outlast.sessions.create()
    assert (await (await session.send("hello")).outcome(wait=30)).text == "Heard."
    victim = min(first)
    os.kill(victim, signal.SIGKILL)
    second = await until(outlast, lambda found: len(found) == 2 and victim not in found)
    assert len(second & first) == 1
    server.kill()
    await server.wait()
    assert await until(outlast, lambda found: not found) == set()


async def test_a_worker_that_cannot_be_started_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """I5: a machine may be out of memory or processes for a moment."""
    tried = asyncio.Semaphore(0)

    async def fail(*command: str, **options: Any) -> Process:
        tried.release()
        raise BlockingIOError("no process to be had")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", fail)
    monkeypatch.setattr("outlast.cli.server.supervisor._LONGEST_WAIT", 0.01)
    async with Supervisor("app.py", 1, shutdown_seconds=1), asyncio.timeout(20):
        for _ in range(3):
            await tried.acquire()


async def test_ctrl_c_lets_workers_hand_over_what_they_run(outlast: Outlast[Any, Any], server: Process) -> None:
    """P1, I5: a terminal sends it to everybody in it; a worker that is told twice would just end."""
    await until(outlast, lambda found: len(found) == 2)
    session = await outlast.sessions.create()
    sent = await session.send("talk")
    async with session.events() as stream:
        async for event in stream:
            if event.type == "part.delta":
                break
    os.killpg(server.pid, signal.SIGINT)
    assert await server.wait() == 0
    assert await workers(outlast) == set()
    state = sa.text("SELECT state FROM turns WHERE id = :id")
    found = await outlast.database.read(lambda connection: connection.execute(state, {"id": sent.turn_id}).scalar())
    assert found == "queued"


async def test_workers_are_sent_away_with_their_server(outlast: Outlast[Any, Any], server: Process) -> None:
    """DESIGN 8, deploys: SIGTERM to the server is SIGTERM to all; their rows are gone when it has left."""
    await until(outlast, lambda found: len(found) == 2)
    server.terminate()
    assert await server.wait() == 0
    assert await workers(outlast) == set()
