"""The asyncio tasks that pydantic-ai starts around a run of an agent and around its requests."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import structlog
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import ModelRequestContext

log = structlog.get_logger("outlast.calls")

_PATIENCE_SECONDS = 0.5


@dataclass
class RunTasks(AbstractCapability[Any]):
    """Cancelled in the moment in which such a task is ready, pydantic-ai forgets it, and with it an open answer."""

    _alive: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]], init=False, repr=False)

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        self._note()
        return await handler()

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: Any
    ) -> ModelResponse:
        self._note()
        return await handler(request_context)

    async def end_tasks(self) -> None:
        """After the run: whatever is still there belongs to nobody else. What ignores its cancel is not waited for."""
        left = self._alive - {asyncio.current_task()}  # which asks a model itself that does not stream
        for task in left:
            task.cancel()
        if left:
            _, ignoring = await asyncio.wait(left, timeout=_PATIENCE_SECONDS)
            if ignoring:
                log.warning("a capability around a cancelled run ignores its cancel", count=len(ignoring))

    def _note(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._alive.add(task)
        task.add_done_callback(self._alive.discard)
