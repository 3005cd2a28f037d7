"""Dry run of a session: what changes things answers as if it had run, what only reads runs (A8)."""

import asyncio

import pytest
from pydantic_ai import Tool

from outlast import hints
from outlast.testing import ScriptedModel, Step, call
from tests.support.turns.runtime import Runtime, scripted
from tests.support.turns.tree import link

RAN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def write(text: str) -> str:
    RAN.append(f"wrote {text}")
    return "written"


async def look() -> str:
    RAN.append("looked")
    return "seen"


LOOK = Tool(look, metadata=hints(read_only=True))


async def test_what_changes_things_is_simulated_and_what_reads_runs(runtime: Runtime) -> None:
    """A8: the model and the log see that it was simulated."""
    async with runtime(scripted([call("write", text="a"), call("look")], "Done."), tools=[write, LOOK]) as outlast:
        session = await outlast.sessions.create(is_dry_run=True)
        outcome = await session.ask("work")
        results = {each.tool: each.result for each in outcome.calls}
        assert (RAN, results["look"]) == (["looked"], "seen")
        assert (results["write"]["type"], results["write"]["arguments"]) == ("dry_run", {"text": "a"})
        assert "Simulated" in results["write"]["message"]


async def test_no_approval_is_asked_for_what_is_not_run(runtime: Runtime) -> None:
    """A8: nobody decides about a simulation."""
    async with runtime(
        scripted(call("write", text="a"), "Done."), tools=[Tool(write, requires_approval=True)]
    ) as outlast:
        session = await outlast.sessions.create(is_dry_run=True)
        outcome = await session.ask("work")
        assert (outcome.calls[0].result["type"], RAN) == ("dry_run", [])
        assert await session.tasks() == []


async def test_a_dry_run_is_that_of_all_descendants_until_it_ends(runtime: Runtime) -> None:
    """A8: a sub-session of a dry run is one; the next call after its end runs."""
    model = scripted(call("write", text="a"), "One.", call("write", text="b"), "Two.")
    async with runtime(model, tools=[write]) as outlast:
        parent, child = await outlast.sessions.create(is_dry_run=True), await outlast.sessions.create()
        await link(outlast, child, parent)
        await child.ask("one")
        assert RAN == []
        await parent.update(is_dry_run=False)
        await child.ask("two")
        assert RAN == ["wrote b"]


async def test_cancel_is_simulated(runtime: Runtime) -> None:
    """A8: the task that the model would cancel goes on."""
    release = asyncio.Event()

    async def slow() -> str:
        await release.wait()
        return "made"

    steps: list[Step] = [call("slow"), "Later."]
    async with runtime(ScriptedModel(steps), tools=[Tool(slow, metadata=hints(budget=0.01))]) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("begin")).outcome()
        await session.update(is_dry_run=True)
        [task] = await session.tasks()
        steps += [call("check_background", task_id=task.id, cancel=True), "Cancelled.", "It ended."]
        outcome = await (await session.send("cancel it")).outcome()
        assert outcome.calls[0].result["type"] == "dry_run"
        [task] = await session.tasks()
        assert (task.state, task.is_cancel_requested) == ("running", False)
        release.set()
        await session.settled()
        assert [each.state for each in await session.tasks()] == ["succeeded"]
