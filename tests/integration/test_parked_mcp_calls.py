"""Calls of stock MCP servers: parked, finished after their turn, and cancelled where they run."""

from pathlib import Path

import pytest
from pydantic_ai import Agent

from outlast.testing import ScriptedModel, call
from outlast.wire.task_state import TaskState
from tests.support.mcp.mcp_client import reached_by
from tests.support.mcp.mcp_survey import appears
from tests.support.turns.background import BUDGET, only_task, parked_session, wakes_seen
from tests.support.turns.runtime import Runtime


def surveyor() -> ScriptedModel:
    return ScriptedModel([call("survey", river="Elbe", call_id="c1"), "It goes on.", "I see."])


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_parked_call_of_an_mcp_server_finishes_and_wakes_the_session(tmp_path: Path, transport: str) -> None:
    """B1, B7, A1: the connection outlives the turn that made the call."""
    async with reached_by(transport, tmp_path) as server:
        agent = Agent(surveyor(), toolsets=[server], name="agent")
        async with Runtime(tmp_path / "app.db")(agent=agent, budget=BUDGET) as outlast:
            session, task = await parked_session(outlast, "How high is the Elbe?")
            assert (task.tool, task.state) == ("survey", TaskState.RUNNING)
            await appears(tmp_path / "started")
            (tmp_path / "go").touch()
            outcome = await session.settled()
            assert outcome is not None
            assert outcome.text == "I see."
            task = await only_task(session)
            assert task.state is TaskState.SUCCEEDED
            (wake,) = await wakes_seen(session)
            assert "Elbe: 2.4 m" in wake


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_cancel_reaches_the_mcp_server(tmp_path: Path, transport: str) -> None:
    """B6, P6: the server's own code is cancelled; nothing runs on at the other end."""
    async with reached_by(transport, tmp_path) as server:
        agent = Agent(surveyor(), toolsets=[server], name="agent")
        async with Runtime(tmp_path / "app.db")(agent=agent, budget=BUDGET) as outlast:
            session, task = await parked_session(outlast, "How high is the Elbe?")
            await appears(tmp_path / "started")
            assert (await outlast.tasks.cancel(task.id)).state is TaskState.CANCELED
            await appears(tmp_path / "canceled")
            await session.settled()
