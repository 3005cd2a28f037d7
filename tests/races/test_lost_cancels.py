"""A cancel that nobody heard is heard later: it came before there was anybody to hear it, or its signal was lost."""

import asyncio
from pathlib import Path
from typing import Any, Self

import pytest
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage
from pydantic_ai.toolsets import FunctionToolset

from outlast import hints, ids
from outlast.ids import SessionId
from outlast.store.repositories.stored_task import NewTask
from outlast.store.unit import Unit
from outlast.testing import ScriptedModel, call, tool_returns
from outlast.testing.step import Step
from outlast.transitions.tasks import task_moves
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import parked
from tests.support.turns.runtime import Runtime


class _Slow(FunctionToolset[Any]):
    """Takes a while to open, as an MCP server does."""

    def __init__(self, here: Checkpoint, tools: list[Tool[Any]]) -> None:
        super().__init__(tools)
        self._here = here

    async def __aenter__(self) -> Self:
        await self._here()
        return await super().__aenter__()


async def _fly() -> str:
    await asyncio.Event().wait()
    return "flown"


def _say_nothing(*_: Any) -> None:
    return


def _left_behind(unit: Unit, session_id: SessionId) -> None:
    spec: dict[str, Any] = {"args": {}}
    new = NewTask(ids.task_id(), title="fly", call_id="c1", agent="pilot", tool="_fly", spec=spec, may_run_again=True)
    task_moves.orphaned(unit, task_moves.make(unit, session_id, new, worker_id=ids.worker_id()))


async def test_a_task_that_is_run_again_is_cancelled_before_its_tool_is_there(
    database_url: str, tmp_path: Path
) -> None:
    """B6, P6: it was claimed, and its agent was still being opened."""
    here = Checkpoint()
    tools = _Slow(here, [Tool(_fly, metadata=hints(read_only=True))])
    agent = Agent(ScriptedModel(lambda _: "Heard."), name="pilot", toolsets=[tools])
    async with Runtime(database_url, files=str(tmp_path / "files"))(agent=agent) as outlast:
        session = await outlast.sessions.create()
        await outlast.database.transaction(lambda unit: _left_behind(unit, SessionId(session.id)), name="left behind")
        await here.reached()
        [task] = await outlast.tasks.list()
        assert (await outlast.tasks.cancel(task.id, wait=0.1)).state == "running"
        here.open()
        assert (await outlast.tasks.cancel(task.id, wait=20)).state == "canceled"


@pytest.mark.parametrize("is_asked_again", [True, False])
async def test_a_cancel_whose_signal_was_lost(
    ready_postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_asked_again: bool
) -> None:
    """B6, P6: its process died between the commit and the signal. It is asked again, or just looked for."""

    def reply(messages: list[ModelMessage]) -> Step:
        return "It flies." if tool_returns(messages) else call("_fly")

    agent = Agent(ScriptedModel(reply), name="pilot", tools=[Tool(_fly, metadata=hints(budget=0.02))])
    runtime = Runtime(ready_postgres_url, files=str(tmp_path / "files"))
    async with runtime(agent=agent) as worker, runtime(agent=agent, run_work=False) as other:
        session = await worker.sessions.create()
        await (await session.send("go")).outcome(wait=20)
        task = await parked(session)
        with monkeypatch.context() as patch:
            for way in ("publish", "notice"):
                patch.setattr(f"outlast.engines.notify.PostgresSignals.{way}", _say_nothing)
            await other.tasks.cancel(task.id, wait=0)
        if is_asked_again:
            await other.tasks.cancel(task.id, wait=0)
        ended = await other.tasks.wait(task.id, seconds=20)
        assert ended.state == "canceled"
