"""An agent with what it needs on a worker: its dependencies per turn, its toolsets opened once."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from typing import Any

import structlog
from pydantic_ai import Agent, RunContext, RunUsage, ToolDefinition
from pydantic_ai.models import Model
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import FunctionToolset

from outlast.agents.direct import DirectTools
from outlast.agents.lease import DepsLease
from outlast.agents.mcp_calls import connect
from outlast.agents.output import OutputTypes
from outlast.agents.size import warn_if_large
from outlast.containment import Contained, as_error
from outlast.ids import SessionId, TurnId
from outlast.values.redact import last_line

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

    def __init__(
        self,
        agent: Agent[Any, Any],
        deps: DepsFactory | None,
        models: Mapping[str, Model | str],
        *,
        call_deadline: timedelta = timedelta(hours=24),
    ) -> None:
        self.agent = agent
        self._deadline = call_deadline
        self.is_measured = False
        self.models = models
        self.output_types = OutputTypes(agent)
        self._deps = deps
        self._leave = asyncio.Event()
        self._ready: asyncio.Future[None] | None = None
        self._keeper: asyncio.Task[None] | None = None

    @cached_property
    def direct(self) -> DirectTools:
        """Asked for when the first tool is called without a turn: the program has told the agent everything by then."""
        return DirectTools(self.agent)

    def model_for(self, chosen: Model | str | None) -> object:
        """The model that a run is made with: what `override` has set here comes before the one that was chosen."""
        overridden = vars(self.agent)["_override_model"].get()
        return (chosen or self.agent.model) if overridden is None else overridden.value

    def lease(self, context: TurnContext) -> DepsLease:
        """The dependencies of one turn or task, not opened yet."""
        return DepsLease(None if self._deps is None else partial(self._deps, context))

    def measure_tools(self, tools: Sequence[ToolDefinition]) -> None:
        """Warn once when what the agent offers to the model is very large."""
        if not self.is_measured:
            self.is_measured = True
            warn_if_large(tools)

    async def declared_tools(self) -> Sequence[ToolDefinition]:
        """What the agent offers, without a turn to offer it in: functions as declared, other toolsets as they list."""
        await self.enter()
        context = RunContext[Any](deps=None, model=TestModel(), usage=RunUsage())
        found: list[ToolDefinition] = []
        for toolset in self.agent.toolsets:
            if isinstance(toolset, FunctionToolset):
                found.extend(tool.tool_def for tool in toolset.tools.values())
            else:
                with Contained():
                    found.extend(tool.tool_def for tool in (await toolset.get_tools(context)).values())
        return found

    async def enter(self) -> None:
        """Open the agent's toolsets and MCP servers, once; one keeper enters and leaves them.

        All who wait for it share what becomes of it; whoever comes after a failure tries again.
        """
        if self._ready is None or self._keeper is None or self._keeper.done():
            for toolset in self.agent.toolsets:
                connect(toolset, self._deadline)
            self._ready = asyncio.get_running_loop().create_future()
            self._keeper = asyncio.create_task(self._keep(self._ready), name="agent keeper")
        await asyncio.shield(self._ready)  # whoever is cancelled meanwhile does not keep the others out

    async def close(self) -> None:
        self._leave.set()
        if self._keeper is not None:
            if self._ready is not None and not self._ready.done():
                self._keeper.cancel()  # what hangs while it opens would hold up the end
            await asyncio.wait({self._keeper})

    async def _keep(self, ready: asyncio.Future[None]) -> None:
        try:
            async with self.agent:
                ready.set_result(None)
                await self._leave.wait()
        except BaseException as exc:
            was_canceled = isinstance(exc, asyncio.CancelledError)
            error = RuntimeError("a toolset cancelled its own opening") if was_canceled else as_error(exc)
            if ready.done():
                log.error("the agent's toolsets did not close cleanly", error=last_line(exc))
            else:
                ready.set_exception(error)
                ready.exception()  # all who waited may have gone
