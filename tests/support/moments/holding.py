"""A capability of an agent that takes its time with one kind of event, so that a test acts just before it."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import AgentStreamEvent

from tests.support.moments.checkpoint import Checkpoint


class HoldsBack(AbstractCapability[Any]):
    """The first event of a type waits at the checkpoint before anybody is told."""

    def __init__(self, checkpoint: Checkpoint, held: type[Any]) -> None:
        self._checkpoint = checkpoint
        self._held = held

    async def wrap_run_event_stream(
        self, ctx: RunContext[Any], *, stream: AsyncIterable[AgentStreamEvent]
    ) -> AsyncIterator[AgentStreamEvent]:
        async for event in stream:
            if isinstance(event, self._held):
                await self._checkpoint()
            yield event
