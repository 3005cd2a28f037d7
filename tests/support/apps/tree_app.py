"""An app of several processes whose sessions give work to one another, three deep: it follows from their history.

The deepest runs a shell command, or looks and may be run again; each start leaves a line with its process in a file.
"""

import asyncio
import os
from datetime import timedelta
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage

from outlast import Outlast, Settings, hints
from outlast.testing import ScriptedModel, call, last_user_text, tool_returns
from outlast.testing.step import Step
from outlast.toolkit import shell_tool
from tests.support.apps.shared_app import FOLDER, effect

DEEPEST = 3


async def probe() -> str:
    """Only looks: it may be run again."""
    effect("probe.began")
    while not (FOLDER / "open").exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.02)
    effect("probe.ended")
    return "gold"


def reply(messages: list[ModelMessage]) -> Step:
    """Sessions are called "probe 1", "probe 2" …; the parent waits for its child, or with "shell" does not."""
    part: Any = messages[0].parts[-1]
    what, level = str(part.content).split()
    if "Background task" in last_user_text(messages):
        return f"{what} {level} was told"
    found = [*tool_returns(messages).values()]
    if found:
        return f"{what} {level} has {found[-1]}"
    if int(level) < DEEPEST:
        return call("run_sub_session", prompt=f"{what} {int(level) + 1}", wait_seconds=300 if what == "probe" else 0)
    return (
        call("probe") if what == "probe" else call("run_command", command=f"echo $$ > {FOLDER}/shell; sleep 600 & wait")
    )


def make(database: str, **settings: Any) -> Outlast[Any, Any]:
    chosen: dict[str, Any] = {
        "coalesce": timedelta(milliseconds=5),
        "wake_company": timedelta(0),
        "drain": timedelta(seconds=1),
        "files": str(FOLDER / "files"),
        **settings,
    }
    tools = [Tool(probe, metadata=hints(read_only=True, budget=None)), shell_tool(budget=0.1)]
    return Outlast(
        Agent(ScriptedModel(reply), tools=tools, name="tree"), database=database, settings=Settings(**chosen)
    )


app = make(os.environ.get("OUTLAST_TEST_DATABASE", "postgresql:///outlast"))
