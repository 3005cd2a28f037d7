"""The app under load: turns that end at once, with a sync tool that is quick or one that holds its thread."""

import time
from collections.abc import AsyncIterator

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from outlast import Outlast, Settings

_CALLS = 20
_HELD_SECONDS = 5.0


def hold() -> str:
    """Keep a thread busy."""
    time.sleep(_HELD_SECONDS)
    return "held"


def quick() -> str:
    """End at once."""
    return "quick"


async def answer(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    """Calls what the last message of a person names; then it is done."""
    last = messages[-1]
    parts = last.parts if isinstance(last, ModelRequest) else ()
    asked = [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
    if asked and asked[-1] in ("hold", "quick"):
        count = _CALLS if asked[-1] == "hold" else 1
        yield {at: DeltaToolCall(name=asked[-1], json_args="{}") for at in range(count)}
    else:
        yield "Done."


app = Outlast(
    Agent(FunctionModel(stream_function=answer), tools=[hold, quick], name="loaded"),
    database="load.db",
    settings=Settings(durability="normal", log_level="info"),
)
