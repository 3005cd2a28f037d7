"""What the command says of held sessions, background work and interrupted tasks is whole (K1, I3)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic_ai import Tool
from typer.testing import CliRunner

from outlast import Client, hints
from outlast.cli.app_file import AnyOutlast
from outlast.cli.main import app
from outlast.client.session import Session
from outlast.errors import InvalidInput
from outlast.store.repositories import tasks
from outlast.testing import call
from outlast.transitions import task_errors
from outlast.transitions.tasks import wake
from outlast.wire.task import Task
from tests.support.network.server import serving
from tests.support.turns.runtime import Runtime, scripted


class Command:
    """The command of somebody with an admin's key, against a server in this process."""

    def __init__(self, url: str, token: str, client: Client, outlast: AnyOutlast) -> None:
        self._place = ("--url", url, "--token", token)
        self.client = client
        self.outlast = outlast

    async def says(self, *arguments: str) -> str:
        done = await asyncio.to_thread(CliRunner().invoke, app, [*arguments, *self._place])
        return done.output


@asynccontextmanager
async def parked(runtime: Runtime, released: asyncio.Event) -> AsyncGenerator[tuple[Command, Session, Task]]:
    """A session whose tool goes on in the background until it is released."""

    async def survey() -> str:
        await released.wait()
        return "4 m deep"

    model = scripted(call("survey"), "It goes on.", "I was told.", "I was told again.")
    tool = Tool(survey, metadata=hints(budget=0.01))
    async with serving(runtime(model, tools=[tool])) as server:
        _, token = await server.outlast.keys.make("ada", "laptop", role="admin")
        async with Client(server.url, token) as client:
            session = await client.sessions.create()
            await (await session.send("Measure the river.")).outcome(wait=10)
            (task,) = await client.tasks.list()
            yield Command(server.url, token, client, server.outlast), session, task


async def test_attach_names_what_goes_on_in_the_background(runtime: Runtime) -> None:
    released = asyncio.Event()
    async with parked(runtime, released) as (command, session, task):
        assert f"No turn runs; in the background: survey ({task.id})" in await command.says("attach", session.id)
        released.set()
        await session.settled(wait=10)
        assert "Nothing runs in it." in await command.says("attach", session.id)


async def test_a_held_session_in_which_a_result_waits_is_found(runtime: Runtime) -> None:
    released = asyncio.Event()
    async with parked(runtime, released) as (command, session, task):
        await command.says("stop", session.id)
        released.set()
        await command.client.tasks.wait(task.id, seconds=10)
        found = await command.says("doctor")
        assert "held; 1 result waits" in found
        assert f"outlast sessions resume {session.id}" in found
        assert "survey" in (await command.says("sessions", "show", session.id)).partition("waits")[2]
        assert await session.inbox() == []
        await command.says("sessions", "resume", session.id)
        await session.settled(wait=10)
        assert await command.says("doctor") == "Nothing is stuck.\n"


async def test_a_cascade_says_which_tasks_it_canceled(runtime: Runtime) -> None:
    async with parked(runtime, asyncio.Event()) as (command, session, task):
        said = await command.says("stop", session.id, "--cascade")
        assert "■ survey has been canceled" in said
        assert task.id in said


async def test_an_interrupted_task_is_told_as_what_is_known_of_it(runtime: Runtime) -> None:
    """A2: the same of a task as of a call, without the time that nobody counted."""
    async with parked(runtime, asyncio.Event()) as (command, session, task):
        await command.client.tasks.cancel(task.id)
        await session.settled(wait=10)
        stored = await command.outlast.database.read(lambda connection: tasks.get(connection, task.id))
        assert stored is not None
        interrupted = replace(stored, error={**task_errors.INTERRUPTED})
        assert "was interrupted when its process ended" in wake.headline(interrupted)
        assert "process ended; " in wake.headline(interrupted)


async def test_a_database_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A mistyped path would be a new and empty database."""
    with pytest.raises(InvalidInput, match="There is no folder"):
        async with Runtime(tmp_path / "mistyped" / "app.db")(scripted("Hello.")):
            pass
    assert not (tmp_path / "mistyped").exists()
