"""A tool asks somebody, and goes on with the answer."""

import asyncio
from typing import Any

from outlast.calls.call import current_call
from outlast.calls.questions import CallQuestions
from outlast.errors import NotStarted


async def ask(prompt: str, schema: dict[str, Any] | None = None) -> Any:
    """Ask a person, or the model, and wait: `colour = await outlast.ask("Which colour?")`, in a tool.

    The call goes on as a background task at once, and waiting takes none of its time. The answer is a text, or fits
    the JSON schema. A call that is run again gets the answers that it was given, if it asks the same in the same order.
    A sync tool asks with `outlast.ask_sync`.
    """
    return await _questions().ask(prompt, schema)


def ask_sync(prompt: str, schema: dict[str, Any] | None = None) -> Any:
    """As `outlast.ask`, in a sync tool: it waits in the tool's own thread."""
    questions = _questions()
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return questions.ask_in_thread(prompt, schema)
    raise NotStarted("outlast.ask_sync is for sync tools: write `await outlast.ask(...)` here.")


def _questions() -> CallQuestions:
    call = current_call.get()
    if call is None or call.questions is None:
        raise NotStarted("Questions are there for tools that Outlast runs: this was called outside of one.")
    return call.questions
