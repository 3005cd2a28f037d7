"""An agent that knows nothing of Outlast runs unchanged: deps, output type, MCP server, sync tools, timeouts."""

from pathlib import Path

import pytest

from outlast import Outcome
from tests.support.crashes.crash import MESSAGE, World, crash, session_of
from tests.support.crashes.scenarios import Report
from tests.support.logs.histories import check_history, return_of, stands_once
from tests.support.models.providers import check_providers

# Starting processes takes its time on a busy machine.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def outcomes_of(outcome: Outcome) -> dict[str, str | None]:
    return {each.tool: each.outcome for each in outcome.calls}


async def test_a_whole_turn_of_an_existing_agent(world: World) -> None:
    """A1: every tool runs as it did, the outcome carries the validated output, deps are opened and closed."""
    async with world.open("existing agent") as outlast:
        session = await session_of(outlast)
        outcome = await session.ask(MESSAGE)
        assert outcome.output == Report(city="Oslo", degrees=4)
        assert outcomes_of(outcome) == {"measure": "success", "whoami": "success", "stuck": "retried"}
        history = await session.history()
        assert return_of("w1", history).content == "the desk of local"
        assert "Oslo: 4 degrees" in str(return_of("m1", history).content)
        assert "imed out" in str(return_of("s1", history).content)
        check_history(history)
        await check_providers(history)
    assert world.effects == ["desk opened", "measure Oslo", "whoami local", "desk closed"]


async def test_an_existing_agent_goes_on_after_a_kill_in_a_sync_tool(world: World) -> None:
    """A1, P2: what its MCP server had answered is kept; the call in flight is told; deps are made anew."""
    crash(world.folder, "existing agent", "tool whoami")
    async with world.open("existing agent") as outlast:
        session = await session_of(outlast)
        outcome = await session.settled()
        assert outcome is not None
        assert outcome.output == Report(city="Oslo", degrees=4)
        assert outcomes_of(outcome) == {"measure": "success", "whoami": "interrupted", "stuck": "retried"}
        history = await session.history()
        assert stands_once(MESSAGE, history)
        check_history(history)
    assert world.effects == [
        "desk opened",
        "measure Oslo",
        "whoami local",
        "desk opened",
        "desk closed",
    ]


async def test_a_read_only_mcp_tool_in_flight_is_run_again(world: World) -> None:
    """A1, P2: the server's own annotation says that it may be."""
    crash(world.folder, "existing agent", "commit journal after 1")
    async with world.open("existing agent") as outlast:
        session = await session_of(outlast)
        outcome = await session.settled()
        assert outcome is not None
        assert outcome.output == Report(city="Oslo", degrees=4)
        assert outcomes_of(outcome)["measure"] == "success"
        check_history(await session.history())
    assert world.effects[-3:] == ["measure Oslo", "whoami local", "desk closed"]


async def test_a_kill_between_the_output_and_the_end_of_the_turn(world: World) -> None:
    """A1, P2: the output was journaled; the new process validates it and ends the turn without asking again."""
    crash(world.folder, "existing agent", "commit turn.end before 1")
    async with world.open("existing agent") as outlast:
        session = await session_of(outlast)
        outcome = await session.settled()
        assert outcome is not None
        assert (outcome.output, outcome.usage.requests) == (Report(city="Oslo", degrees=4), 4)
        check_history(await session.history())
