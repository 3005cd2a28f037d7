"""The control tools stand beside the agent's own."""

from pathlib import Path

from pydantic_ai import Agent

from outlast import Outlast
from outlast.testing import ScriptedModel, call


async def test_the_agents_tools_and_the_control_tools_are_both_there(tmp_path: Path) -> None:
    """B2: one request offers both, and each call reaches its own."""
    model = ScriptedModel(
        [[call("weigh", call_id="own"), call("check_background", list=True, call_id="ours")], "Done."]
    )
    agent = Agent(model)

    @agent.tool_plain
    def weigh() -> int:  # pyright: ignore[reportUnusedFunction]
        return 7

    async with Outlast(agent, database=tmp_path / "app.db") as outlast:
        outcome = await (await outlast.sessions.create()).ask("Weigh it.")
    assert {"weigh", "check_background", "read_output"} <= model.requests[0].tools.keys()
    results = {each.call_id: each.result for each in outcome.calls}
    assert results["own"] == 7
    assert "tasks" in results["ours"]


async def test_a_tool_with_the_name_of_a_control_tool_is_refused(tmp_path: Path) -> None:
    """B2: neither hides the other."""
    agent = Agent(ScriptedModel(["Never said."]))

    @agent.tool_plain
    def read_output() -> str:  # pyright: ignore[reportUnusedFunction]
        return "mine"

    async with Outlast(agent, database=tmp_path / "app.db") as outlast:
        outcome = await (await outlast.sessions.create()).ask("Read it.")
    assert outcome.state == "failed"
