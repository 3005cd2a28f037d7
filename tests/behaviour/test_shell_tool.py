"""The shell tool: its output streams, and a cancel ends it with all its children."""

import asyncio
import os
from contextlib import aclosing
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage

from outlast import Outlast, Settings
from outlast.cli.server.process import refuse_shells
from outlast.errors import Forbidden
from outlast.testing import ScriptedModel, Step, call, tool_returns
from outlast.toolkit import shell_tool
from outlast.toolkit.shell import run
from outlast.wire.task_state import TaskState


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


async def has_ended(pid: int) -> None:
    """A killed process is still there for a moment."""
    async with asyncio.timeout(10):
        while is_running(pid):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def agent_that_runs(command: str) -> Agent[None, str]:
    def script(messages: list[ModelMessage]) -> Step:
        return "It runs." if tool_returns(messages) else call("run_command", command=command)

    return Agent(ScriptedModel(script), tools=[shell_tool(budget=0.05)])


async def test_a_command_gives_its_exit_code_and_the_end_of_its_output() -> None:
    """A14: also outside Outlast, where nothing else hears its output."""
    assert await run("printf hello; exit 3") == {"exit_code": 3, "stdout": "hello", "stderr": ""}


async def test_a_parked_command_streams_its_output_and_its_end_wakes_the_session(tmp_path: Path) -> None:
    """B1, B7, A3: the command goes on after its turn; what it printed can be read."""
    gate = tmp_path / "gate"
    command = f"echo before; until [ -e {gate} ]; do sleep 0.02; done; echo after"
    async with Outlast(agent_that_runs(command), database=tmp_path / "app.db") as outlast:
        session = await outlast.sessions.create()
        outcome = await (await session.send("Run it.")).outcome()
        task_id = outcome.calls[0].result["task_id"]
        gate.touch()
        await session.settled()
        task = await outlast.tasks.get(task_id)
        assert (task.state, task.result["exit_code"]) == (TaskState.SUCCEEDED, 0)
        assert (await outlast.tasks.output(task_id)).text == "before\nafter\n"


async def test_cancel_ends_a_command_with_its_grandchildren(tmp_path: Path) -> None:
    """B6: none is left running, and the answer says so."""
    command = "sh -c 'sleep 600 & echo $! $$; wait'"
    async with Outlast(agent_that_runs(command), database=tmp_path / "app.db") as outlast:
        session = await outlast.sessions.create()
        outcome = await (await session.send("Run it.")).outcome()
        task_id = outcome.calls[0].result["task_id"]
        async with aclosing(outlast.tasks.follow(task_id)) as pieces:
            pids = [int(pid) for pid in (await anext(pieces)).text.split()]
        assert len(pids) == 2
        assert all(map(is_running, pids))
        task = await outlast.tasks.cancel(task_id)
        assert task.state is TaskState.CANCELED
        assert not any(map(is_running, pids))


async def test_a_command_is_ended_at_its_timeout_with_all_that_it_started() -> None:
    """A14: the rest of its words are told, both streams apart."""
    done = await run("sleep 600 & echo $!; echo broken >&2; wait", timeout=0.3)
    assert (done["exit_code"], done["stderr"]) == (None, "broken\n")
    assert "ended after 0.3 seconds" in done["timed_out"]
    await has_ended(int(done["stdout"]))


async def test_what_a_command_leaves_running_is_ended_with_it() -> None:
    """A14: a child that holds the streams open is not waited for."""
    done = await run("sleep 600 & echo $!")
    assert done["exit_code"] == 0
    await has_ended(int(done["stdout"]))


async def test_a_server_that_others_reach_does_not_start_with_a_shell_unless_it_is_set(tmp_path: Path) -> None:
    """A14: it says what to do."""
    agent = agent_that_runs("true")
    async with Outlast(agent, database=tmp_path / "app.db") as outlast:
        with pytest.raises(Forbidden, match="OUTLAST_ALLOW_SHELL"):
            await refuse_shells(outlast)
    async with Outlast(agent, database=tmp_path / "app.db", settings=Settings(allow_shell=True)) as outlast:
        await refuse_shells(outlast)
