"""Calls whose result comes from outside: each is a task, which somebody completes (A1, B4, B9)."""

from typing import Any

import pytest
from pydantic_ai import Agent, CallDeferred, DeferredToolRequests, Tool, ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

from outlast import hints
from outlast.testing import ScriptedModel, call
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import nth_event, only_task, stored_task, task_that, wakes_seen
from tests.support.turns.runtime import Runtime

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "integer"}}}


def hands_out(x: int) -> str:
    raise CallDeferred


KINDS: dict[str, dict[str, Any]] = {
    "outside": {"toolsets": [ExternalToolset([ToolDefinition(name="act", parameters_json_schema=SCHEMA)])]},
    "handed out": {"tools": [Tool(hands_out, name="act")]},
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("output_type", [str, [str, DeferredToolRequests]])
async def test_the_result_of_such_a_call_is_the_completion_of_a_task(
    runtime: Runtime, name: str, output_type: Any
) -> None:
    """A1, B4, B9: the model gets a handle at once, the run goes on, and the owner completes the task."""
    model = ScriptedModel([call("act", x=1), "Waiting.", "There it is."])
    agent = Agent(model, output_type=output_type, name="agent", **KINDS[name])
    checked: list[Any] = []

    @agent.output_validator
    def check(output: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        checked.append(output)
        return output

    async with runtime(agent=agent) as outlast:
        session = await outlast.sessions.create()
        outcome = await (await session.send("act")).outcome()
        task = await only_task(session)
        assert (outcome.output, task.kind, task.state) == ("Waiting.", "external", "running")
        [told] = outcome.calls
        assert (told.outcome, told.result["task_id"], task.call_id) == ("parked", task.id, told.call_id)
        assert (await session.refresh()).interrupted_calls == []
        assert (await outlast.tasks.complete(task.id, result="from outside")).applied
        await nth_event(session, "turn.completed", 2)
        assert "from outside" in (await wakes_seen(session))[0]
    assert checked == ["Waiting.", "There it is."]


async def test_a_parked_call_that_hands_its_work_out_is_completed_too(runtime: Runtime) -> None:
    """A1, B4, B9: one call, one task: it goes on without a worker."""
    here = Checkpoint()

    async def act() -> str:
        await here()
        raise CallDeferred

    tool = Tool(act, metadata=hints(budget=0.01))
    model = ScriptedModel([call("act"), "It goes on.", "I see."])
    async with runtime(agent=Agent(model, name="agent", tools=[tool])) as outlast:
        session = await outlast.sessions.create()
        assert (await (await session.send("act")).outcome()).text == "It goes on."
        here.open()
        task = await task_that(session, lambda each: each.kind == "external")
        assert (task.state, (await stored_task(outlast, task.id)).worker_id) == ("running", None)
        assert (await outlast.tasks.complete(task.id, error="No.")).applied
        await nth_event(session, "turn.completed", 2)
