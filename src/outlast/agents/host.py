"""An agent with what it needs on a worker: its dependencies per turn, its toolsets opened once."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from typing import Any

import structlog
from pydantic_ai import Agent, RunContext, RunUsage, Tool, ToolDefinition
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import FunctionToolset

from outlast.agents.direct import DirectTools
from outlast.agents.lease import DepsLease
from outlast.agents.mcp.mcp_calls import connect
from outlast.agents.output import OutputTypes
from outlast.agents.size import schema_size, warn_if_large
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
    agent: str
    """The name of the session's agent."""


DepsFactory = Callable[[TurnContext], AbstractAsyncContextManager[Any]]


class AgentHost:
    """An agent with what it needs on this worker: entered once, left when the worker leaves."""

    def __init__(
        self,
        agent: Agent[Any, Any],
        deps: DepsFactory | None,
        models: Mapping[str, Model | str],
        *,
        longest_call: timedelta = timedelta(hours=24),
        is_one_of_several: bool = False,
    ) -> None:
        self.agent = agent
        self._longest_call = longest_call
        self.is_measured = False
        self.overhead = 0
        """About how many characters instructions and tools took in the last request."""
        self.is_one_of_several = is_one_of_several
        """Histories that it goes on with may begin with another agent's system prompt."""
        self.models = models
        self.when_listed: Callable[[Sequence[ToolDefinition]], None] | None = None
        """Told of all tools that a model is offered, or that were asked for."""
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
            self._tell_listed(tools)

    def overhead_of(self, parameters: ModelRequestParameters) -> int:
        """About how many characters instructions and tools take in each request; counted in the first."""
        if self.overhead == 0:
            tools = [*parameters.function_tools, *parameters.output_tools]
            said = sum(len(each.content) for each in parameters.instruction_parts or ())
            self.overhead = max(1, said + sum(map(schema_size, tools)))
        return self.overhead

    @cached_property
    def declared_size(self) -> int:
        """About how many characters its own tools take in each request: what is known before the first."""
        return sum(map(schema_size, self.function_tools()))

    def function_tools(self) -> Sequence[ToolDefinition]:
        """What it declares in its own code: known without a connection to anybody."""
        return [
            tool.tool_def for each in self.agent.toolsets if isinstance(each, FunctionToolset) for tool in _of(each)
        ]

    @property
    def has_other_toolsets(self) -> bool:
        return not all(isinstance(each, FunctionToolset) for each in self.agent.toolsets)

    async def declared_tools(self) -> Sequence[ToolDefinition]:
        """What the agent offers, without a turn to offer it in: functions as declared, other toolsets as they list."""
        await self.enter()
        context = RunContext[Any](deps=None, model=TestModel(), usage=RunUsage())
        found: list[ToolDefinition] = []
        for toolset in self.agent.toolsets:
            if isinstance(toolset, FunctionToolset):
                found.extend(tool.tool_def for tool in _of(toolset))
            else:
                with Contained():
                    found.extend(tool.tool_def for tool in (await toolset.get_tools(context)).values())
        self._tell_listed(found)
        return found

    def _tell_listed(self, tools: Sequence[ToolDefinition]) -> None:
        if self.when_listed is not None:
            self.when_listed(tools)

    async def enter(self) -> None:
        """Open the agent's toolsets and MCP servers, once; one keeper enters and leaves them.

        All who wait for it share what becomes of it; whoever comes after a failure tries again.
        """
        if self._ready is None or self._keeper is None or self._keeper.done():
            for toolset in self.agent.toolsets:
                connect(toolset, self._longest_call)
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


def _of(toolset: FunctionToolset[Any]) -> Collection[Tool[Any]]:
    return toolset.tools.values()
