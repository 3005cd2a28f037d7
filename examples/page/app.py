"""An agent to try the page with. Its model is a script, so it needs no API key: put yours in its place."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ToolReturnPart

import outlast
from outlast.testing import ScriptedModel, Step, call, last_user_text, text


def step(messages: list[ModelMessage]) -> Step:
    """What the model says: it counts if it is asked to, and chats otherwise."""
    said, last = last_user_text(messages), messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return text("I am counting. It goes on while we talk.", chunk=4, pause=0.05)
    if "count_birds" in said:
        return text("I have counted them: there are 12 birds in the park.", chunk=4, pause=0.05)
    if "count" in said.lower():
        seconds = next((int(word) for word in said.split() if word.isdecimal()), 20)
        return call("count_birds", seconds=seconds)
    return text("Ask me to count the birds: it takes longer than an answer should. " * 3, chunk=4, pause=0.05)


agent = Agent(ScriptedModel(step), name="birdwatcher")


@agent.tool_plain(metadata=outlast.hints(budget=1, idempotent=True))
async def count_birds(seconds: int) -> str:
    """Count the birds in the park. What takes longer than a second goes on in the background."""
    for second in range(seconds):
        outlast.progress(second, seconds, unit="seconds")
        await asyncio.sleep(1)
    return "12 birds"


app = outlast.Outlast(agent, database="page.db")
