"""pydantic-ai forgets a task if the run is cancelled in the moment in which it is ready: `RunTasks` does not."""

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.test import TestModel

from outlast.calls.running import run_tasks
from outlast.calls.running.run_tasks import RunTasks


async def test_nothing_is_left_of_a_run_whenever_it_is_cancelled() -> None:
    """P6: also not the answer of the model that was just opened."""
    agent = Agent(TestModel())
    before = asyncio.all_tasks()
    for ticks in range(1000):
        running = asyncio.create_task(_run(agent))
        for _ in range(ticks):
            await asyncio.sleep(0)
        if running.done():
            return
        running.cancel()
        await asyncio.wait({running})
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == before, f"cancelled after {ticks} ticks"
    raise AssertionError("The run never ended.")


class Stubborn(AbstractCapability[Any]):
    """Begins again when it is cancelled."""

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        try:
            return await handler()
        except asyncio.CancelledError:
            return await handler()


async def test_what_ignores_its_cancel_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """P6: a stop that meets it ends all the same."""
    monkeypatch.setattr(run_tasks, "_PATIENCE_SECONDS", 0.01)
    agent = Agent(TestModel(), capabilities=[Stubborn()])
    before = asyncio.all_tasks()
    async with asyncio.timeout(60):
        for ticks in range(15):
            running = asyncio.create_task(_run(agent))
            for _ in range(ticks):
                await asyncio.sleep(0)
            running.cancel()
            await asyncio.wait({running})
            for task in asyncio.all_tasks() - before:
                task.cancel()
                await asyncio.wait({task})


async def _run(agent: Agent[None, str]) -> None:
    tasks = RunTasks()
    try:
        async with agent.iter("Hello.", capabilities=[tasks]) as run:
            async for node in run:
                if Agent.is_model_request_node(node):
                    async with node.stream(run.ctx) as stream:
                        async for _ in stream:
                            continue
    finally:
        await tasks.end_tasks()
