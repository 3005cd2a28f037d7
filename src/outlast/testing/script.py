"""The script: which step answers which request."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypeAlias

from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse

from outlast.testing.step import Reply, Step, as_reply

StepFunction: TypeAlias = Callable[[list[ModelMessage]], Step | Awaitable[Step]]
Steps: TypeAlias = Sequence[Step] | StepFunction
Counting: TypeAlias = Literal["requests", "history"]


class ScriptExhausted(AssertionError, UserError):
    """The model was asked for more than the script has. `request` counts from 1."""

    def __init__(self, request: int, *, steps: int, by: Counting) -> None:
        counted = "requests made" if by == "requests" else "responses in the history"
        super().__init__(
            f"the script has no step {request}: it has {steps}, counted by {counted}. "
            "Add a step, or look at model.requests for what was asked."
        )
        self.request = request


class Script:
    """Picks steps. Only `by="requests"` keeps a count in memory; the others survive a restart."""

    def __init__(self, steps: Steps, *, by: Counting) -> None:
        self._steps = steps
        self._by: Counting = by
        self._made = 0

    async def reply_to(self, messages: list[ModelMessage]) -> Reply:
        # The count moves before anything is awaited: concurrent requests never share a step.
        made, self._made = self._made, self._made + 1
        if callable(self._steps):
            step = self._steps(messages)
            return as_reply(await step if inspect.isawaitable(step) else step)
        index = made if self._by == "requests" else _responses_in(messages)
        if index >= len(self._steps):
            raise ScriptExhausted(index + 1, steps=len(self._steps), by=self._by)
        return as_reply(self._steps[index])


def _responses_in(messages: Sequence[ModelMessage]) -> int:
    return sum(isinstance(message, ModelResponse) for message in messages)
