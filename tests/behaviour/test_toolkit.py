"""Ready-made tools: the time, and how far the model is."""

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage

from outlast import Outlast
from outlast.calls.narration import Narration
from outlast.errors import InvalidInput
from outlast.testing import ScriptedModel, Step, call, tool_returns
from outlast.tool_hints import hints_of
from outlast.toolkit import fetch_tool, file_tools, report_progress_tool, shell_tool, time_tool, todo_tools
from tests.support.turns.runtime import events_of


def agent_that_calls(name: str, **args: Any) -> Agent[None, str]:
    def script(messages: list[ModelMessage]) -> Step:
        return "Done." if tool_returns(messages) else call(name, **args)

    return Agent(ScriptedModel(script), tools=[time_tool(zone="Europe/Oslo"), report_progress_tool()])


ARGS: dict[str, Any] = {
    **{"url": "https://example.com/", "name": "a.txt", "pattern": "water", "command": "make", "label": "Comparing"},
    **{"todos": [{"text": "Look", "state": "doing"}, {"text": "Say", "state": "done"}]},
}


def test_each_tool_says_in_words_what_it_does() -> None:
    """A14, A12: for people, with what it is called with."""
    tools = [time_tool(), report_progress_tool(), fetch_tool(), shell_tool(), *todo_tools(), *file_tools()]
    said = {
        each.name: Narration(each.name, hints_of(each.tool_def.metadata), ARGS, str).of("running") for each in tools
    }
    assert [name for name, words in said.items() if not words or name in words or "{" in words] == []
    assert said["fetch_page"] == "Reading https://example.com/"
    assert said["write_todos"] == "1 of 2 done; now: Look"


async def test_the_time_is_told_in_the_zone_that_is_asked_for(tmp_path: Path) -> None:
    """A14."""
    async with Outlast(agent_that_calls("current_time", zone="Asia/Tokyo"), database=tmp_path / "app.db") as outlast:
        outcome = await (await outlast.sessions.create()).ask("What time is it?")
    assert outcome.calls[0].result["time"].endswith("+09:00")


async def test_a_zone_that_is_none_is_told_to_the_model(tmp_path: Path) -> None:
    """A14: it can ask again."""
    async with Outlast(agent_that_calls("current_time", zone="Atlantis"), database=tmp_path / "app.db") as outlast:
        outcome = await (await outlast.sessions.create()).ask("What time is it?")
    assert "IANA" in str(outcome.calls[0])
    with pytest.raises(InvalidInput):
        time_tool(zone="Atlantis")


async def test_people_see_how_far_the_model_says_it_is(tmp_path: Path) -> None:
    """A14, A1: as progress, and in the words of the call."""
    agent = agent_that_calls("report_progress", label="Comparing the offers", current=2, total=5)
    async with Outlast(agent, database=tmp_path / "app.db") as outlast:
        session = await outlast.sessions.create()
        await session.ask("Compare them.")
        [started] = await events_of(session, "call.started")
        [progress] = await events_of(session, "call.progress")
    assert started.data["narration"] == "Comparing the offers (2 of 5)"
    assert progress.data["progress"]["current"] == 2
