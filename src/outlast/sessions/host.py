"""An agent with what it needs on a worker: its dependencies per turn, its toolsets opened once."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import structlog
from pydantic_ai import Agent
from pydantic_ai.models import Model

from outlast.ids import SessionId, TurnId
from outlast.sessions.lease import DepsLease

log = structlog.get_logger("outlast.turns")


@dataclass(frozen=True, slots=True)
class TurnContext:
    """For whom and what a turn runs; given to the `deps` factory."""

    owner_id: str
    session_id: SessionId
    turn_id: TurnId | None


DepsFactory = Callable[[TurnContext], AbstractAsyncContextManager[Any]]


class AgentHost:
    """An agent with what it needs on this worker: entered once, left when the worker leaves."""

    def __init__(self, agent: Agent[Any, Any], deps: DepsFactory | None, models: Mapping[str, Model | str]) -> None:
        self.agent = agent
        self.models = models
        self._deps = deps
        self._entering = asyncio.Lock()
        self._leave = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    def lease(self, context: TurnContext) -> DepsLease:
        """The dependencies of one turn or task, not opened yet."""
        return DepsLease(None if self._deps is None else self._deps(context))

    async def enter(self) -> None:
        """Open the agent's toolsets and MCP servers, once; one keeper enters and leaves them."""
        async with self._entering:
            if self._keeper is not None and not self._keeper.done():
                return
            ready = asyncio.get_running_loop().create_future()
            self._keeper = asyncio.create_task(self._keep(ready), name="agent keeper")
            await ready

    async def close(self) -> None:
        self._leave.set()
        if self._keeper is not None:
            await asyncio.wait({self._keeper})

    async def _keep(self, ready: asyncio.Future[None]) -> None:
        try:
            async with self.agent:
                ready.set_result(None)
                await self._leave.wait()
        except Exception as exc:
            if ready.done():
                log.error("the agent's toolsets did not close cleanly", error=repr(exc))
            else:
                ready.set_exception(exc)
