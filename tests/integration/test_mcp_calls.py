"""Calls of stock MCP servers: what a server says of its progress, and a client whose own time limit is shorter."""

from pathlib import Path

import pytest
from pydantic_ai import Agent, ModelRetry

from outlast.testing import ScriptedModel, call
from outlast.wire.task_state import TaskState
from tests.support.mcp.mcp_client import reached_by
from tests.support.mcp.mcp_survey import appears
from tests.support.turns.background import BUDGET, only_task, parked_session, task_that, wakes_seen
from tests.support.turns.runtime import Runtime, wait_for_event

HALFWAY = {"current": 2, "total": 4, "unit": None, "label": "on the Elbe"}
READ_TIMEOUT = 1.5

pytestmark = pytest.mark.parametrize("transport", ["stdio", "http"])


def caller(tool: str) -> ScriptedModel:
    return ScriptedModel([call(tool, river="Elbe", call_id="c1"), "It goes on.", "I see."])


async def test_progress_of_a_server_is_that_of_the_parked_call(tmp_path: Path, transport: str) -> None:
    """A3, B4, B7: progress notifications stand in the task while it runs, and reach the user's own handler too."""
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with reached_by(transport, tmp_path, progress_handler=hear) as server:
        agent = Agent(caller("cruise"), toolsets=[server], name="agent")
        async with Runtime(tmp_path / "app.db")(agent=agent, budget=BUDGET) as outlast:
            session, task = await parked_session(outlast, "Look at the Elbe.")
            await appears(tmp_path / "started")
            assert task.progress is None
            (tmp_path / "halfway").touch()
            running = await task_that(session, lambda task: task.progress is not None)
            assert (running.state, running.progress) == (TaskState.RUNNING, HALFWAY)
            (tmp_path / "go").touch()
            await session.settled()
            task = await only_task(session)
            assert (task.state, task.progress) == (TaskState.SUCCEEDED, HALFWAY)
    assert heard == [(2, 4, "on the Elbe")]


async def test_progress_of_a_server_is_told_while_the_turn_waits(tmp_path: Path, transport: str) -> None:
    """A3, B4: also of a call within its budget."""
    async with reached_by(transport, tmp_path) as server:
        agent = Agent(ScriptedModel([call("cruise", river="Elbe", call_id="c1"), "All seen."]), toolsets=[server])
        async with Runtime(tmp_path / "app.db")(agent=agent, budget=None) as outlast:
            session = await outlast.sessions.create()
            sent = await session.send("Look at the Elbe.")
            (tmp_path / "halfway").touch()
            told = await wait_for_event(session, "call.progress")
            assert told.data == {"call_id": "c1", "progress": HALFWAY}
            (tmp_path / "go").touch()
            assert (await sent.outcome()).text == "All seen."
            assert await session.tasks() == []


async def test_a_call_outlives_the_read_timeout_of_its_client(tmp_path: Path, transport: str) -> None:
    """B1, B7: a call may take as long as Outlast lets it. The same client, used by itself, is the clock here."""
    async with reached_by(transport, tmp_path, read_timeout=READ_TIMEOUT) as server:
        agent = Agent(caller("cruise"), toolsets=[server], name="agent")
        async with Runtime(tmp_path / "app.db")(agent=agent, budget=BUDGET) as outlast:
            session, _ = await parked_session(outlast, "Look at the Elbe.")
            await appears(tmp_path / "started")
            with pytest.raises(ModelRetry, match=r"[Tt]imed out"):
                await server.direct_call_tool("survey", {"river": "Elbe"})
            assert (await only_task(session)).state is TaskState.RUNNING
            (tmp_path / "halfway").touch()
            (tmp_path / "go").touch()
            await session.settled()
            assert (await only_task(session)).state is TaskState.SUCCEEDED
            (wake,) = await wakes_seen(session)
            assert "Elbe: all seen" in wake
