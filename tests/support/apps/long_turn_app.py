"""An app whose turn makes about five thousand events, and goes on from its history after a crash."""

from datetime import timedelta

from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse

from outlast import Outlast, Settings, hints
from outlast.testing import ScriptedModel, call, text
from outlast.testing.step import Step

STEPS = 24
CALLS = 40


async def measure(at: int) -> str:
    return f"{at} metres"


def reply(messages: list[ModelMessage]) -> Step:
    answered = sum(isinstance(each, ModelResponse) for each in messages)
    words = text(f"Step {answered}: " + "measuring the river once more. " * 8, chunk=4, pause=0.004)
    if answered >= STEPS:
        return [words, text("Done.")]
    return [words, *(call("measure", at=answered * CALLS + at) for at in range(CALLS))]


app = Outlast(
    Agent(ScriptedModel(reply), tools=[Tool(measure, metadata=hints(read_only=True))], name="long"),
    database="long.db",
    settings=Settings(
        durability="normal",
        coalesce=timedelta(milliseconds=5),
        max_requests_per_minute=10**6,
    ),
)
