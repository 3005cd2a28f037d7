"""The app of the console's benchmark: an agent with a tool that puts out a line each tenth of a second."""

import asyncio
from datetime import timedelta

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage

from outlast import Outlast, Settings, hints, output, progress
from outlast.testing import ScriptedModel, Step, call, tool_returns

TASKS = 50
SECONDS = 20
_CALLS = 8


def _reply(messages: list[ModelMessage]) -> Step:
    """As the benchmark of the view has it: each turn looks eight times and says a paragraph."""
    if tool_returns(messages[-1:]):
        return "A paragraph of words that says what was found there. " * 8
    if "pour" in str(messages[-1]):
        return [call("pour", river=f"river {number}") for number in range(TASKS)]
    return [call("look", at=f"place {number}", call_id=f"c{len(messages)}-{number}") for number in range(_CALLS)]


agent = Agent(ScriptedModel(_reply), name="bench")


@agent.tool_plain
def look(at: str) -> dict[str, str]:
    return {"at": at, "found": "a river of some depth, and a boat" * 3}


@agent.tool_plain(metadata=hints(budget=0.05))
async def pour(river: str) -> str:
    for each in range(SECONDS * 10):
        output(f"{river}: {each * 17} litres have gone by, and nobody has fallen in so far\n")
        if each % 5 == 0:
            progress(each, SECONDS * 10, unit="looks")
        await asyncio.sleep(0.1)
    return river


app = Outlast(
    agent,
    database="bench.db",
    settings=Settings(
        durability="normal",
        max_requests_per_minute=10**7,
        max_open_requests_per_owner=10**6,
        max_body_bytes_per_minute=10**12,
        max_turns_per_owner=64,
        max_open_tasks_per_session=100,
        max_tasks_per_worker=100,
        heartbeat=timedelta(seconds=10),
    ),
)
