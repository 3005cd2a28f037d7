"""What the hook around an agent's tools needs of the turn that it is for."""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models import ModelRequestContext

from outlast.calls.call import RunningCall


class OpenCalls(Protocol):
    """What is known of the calls that were open when this attempt began."""

    def is_answered(self, call_id: str) -> bool:
        """Its end stands in the log."""
        ...

    def is_masked(self, call_id: str) -> bool:
        """What is known of its arguments is not what they were."""
        ...

    def was_in_flight(self, call_id: str) -> bool:
        """It was journaled and has no end."""
        ...


class CallHost(Protocol):
    """The turn's side of a call: its identity, its channel, and what became of it."""

    def begin(self, call: ToolCallPart) -> RunningCall: ...

    def say_waiting(self, call: RunningCall, reason: str) -> None: ...

    async def view(self, call: RunningCall, value: Any) -> Any:
        """A value as the model gets it: what is too long is kept whole elsewhere."""
        ...

    @property
    def pressed(self) -> asyncio.Future[None]:
        """Done when calls should be parked at once: a person waits to be heard."""
        ...


class ShownResource(Protocol):
    """What the resource of a bound session is like."""

    async def shown(self, request: ModelRequestContext, binding: Mapping[str, Any]) -> ModelRequestContext: ...
