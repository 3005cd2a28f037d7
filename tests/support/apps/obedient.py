"""An agent that does what it is told, so that a test can bring sessions and tasks into every state over HTTP."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic_ai import Tool
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart

import outlast
from outlast import hints
from outlast.testing import ScriptedModel, call, error, gate, text
from outlast.testing.step import Step


def last_words(messages: Sequence[ModelMessage]) -> str:
    """What the person said last; empty when a tool answered after it."""
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    if any(isinstance(part, ToolReturnPart) for part in last.parts):
        return ""
    return " ".join(str(part.content) for part in last.parts if isinstance(part, UserPromptPart))


def obedient(waiting: Callable[[], Awaitable[object]]) -> ScriptedModel:
    """ "survey" parks a call, "wait" waits in the middle of its words, "break" fails; anything else is answered."""

    def reply(messages: list[ModelMessage]) -> Step:
        words = last_words(messages)
        if "survey" in words:
            return call("survey")
        if "wait" in words:
            return [text("Waiting"), gate(waiting), text(" no longer.")]
        if "break" in words:
            return error(400)
        return "As you wish."

    return ScriptedModel(reply)


def survey_tool(waiting: Callable[[], Awaitable[object]]) -> Tool[Any]:
    async def survey() -> str:
        """Measure the river."""
        outlast.output("measuring\n")
        outlast.progress(1, 2, label="half")
        await waiting()
        return "12 metres"

    return Tool(survey, metadata=hints(budget=0.01))
