"""A function tool of a plain agent, without a run of the agent around it, if it takes no context of one.

pydantic-ai prepares a whole run (model, instructions, capabilities, output) to execute one call: ten times the work of
the call itself. Where none of that touches the call, what is left is its tool manager, and the tool.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import cache, partial
from typing import Any, cast

from pydantic_ai import Agent, RunContext, RunUsage, Tool
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.instrumented import InstrumentedModel
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.toolsets import FunctionToolset

from outlast.calls.call import RunningCall
from outlast.calls.slots import slot_for
from outlast.tool_hints import hints_of

_WITHOUT_EFFECT = frozenset(
    {
        *("_model", "_name", "_description", "_deps_type", "model_settings", "end_strategy"),
        *("_instructions", "_system_prompts", "_system_prompt_functions", "_system_prompt_dynamic_functions"),
        *("_output_type", "_output_schema", "_output_toolset", "_output_validators", "_max_output_retries"),
        *("_function_toolset", "_user_toolsets", "_max_tool_retries", "_tool_timeout"),
        *(
            "_enter_lock",
            "_entered_count",
            "_entered_model_ids",
            "_entered_models_by_name",
            "_exit_stack",
            "_selected_models",
        ),
    }
)
"""Attributes of an agent that change nothing about a call of its tools, or that are used here as a run would."""


def cannot_be_run(tool: str) -> ToolFailed:
    return ToolFailed(f"The tool {tool!r} cannot be run: it is not there, or its arguments do not fit.")


class DirectTools:
    """The function tools of an agent that puts nothing around them: no capability, listener, limit or tracing."""

    def __init__(self, agent: Agent[Any, Any]) -> None:
        self._agent = agent
        self._toolsets = _toolsets_of(agent)
        self._managers: dict[str, ToolManager[Any] | None] = {}

    def caller(self, running: RunningCall) -> Callable[[], Awaitable[Any]] | None:
        """Calls the tool. None: this one needs a run of the agent around it."""
        name = running.tool
        if name not in self._managers:
            self._managers[name] = self._manager(name)
        manager = self._managers[name]
        return None if manager is None else partial(_call, manager, running)

    def is_ungated(self, name: str) -> bool:
        """Whether nobody need be asked before it runs, whatever its arguments are."""
        found = (toolset.tools.get(name) for toolset in self._toolsets)
        hints = [hints_of(each.metadata) for each in found if each is not None]
        return all(each.approve is False and not each.requires for each in hints)

    def _manager(self, name: str) -> ToolManager[Any] | None:
        """One for all calls of a tool: what it holds of a run, no tool can see that takes no context."""
        for toolset in self._toolsets:
            tool = toolset.tools.get(name)
            if tool is not None:
                return self._made(toolset, tool) if _needs_no_run(tool) else None
        return None

    def _made(self, toolset: FunctionToolset[Any], tool: Tool[Any]) -> ToolManager[Any]:
        context = RunContext[Any](
            deps=None,
            agent=self._agent,
            model=self._agent.model,  # pyright: ignore[reportArgumentType]  # a plain agent has one
            usage=RunUsage(),
            max_retries=vars(self._agent)["_max_tool_retries"],
        )
        ready = toolset.tool_for_tool_def(tool.tool_def, ctx=context)
        return ToolManager[Any](toolset, ctx=context, tools={tool.name: ready})


async def _call(manager: ToolManager[Any], running: RunningCall) -> Any:
    call = ToolCallPart(tool_name=running.tool, args=running.args, tool_call_id=running.call_id)
    validated = await manager.validate_tool_call(call)
    if not validated.args_valid:
        raise cannot_be_run(running.tool)
    await running.ask()
    assert validated.tool is not None
    async with slot_for(validated.tool.tool_def):
        return await manager.execute_tool_call(validated)


def _needs_no_run(tool: Tool[Any]) -> bool:
    """It is there as it is, may be called, and takes no context, through which a tool can reach all of a run."""
    is_there = tool.prepare is None and tool.tool_def.kind == "function" and not tool.tool_def.defer_loading
    return is_there and not tool.takes_ctx and tool.args_validator is None


def _toolsets_of(agent: Agent[Any, Any]) -> list[FunctionToolset[Any]]:
    """All its toolsets, or none of them."""
    if not _is_plain(agent):
        return []
    found = [each for each in agent.toolsets if isinstance(each, FunctionToolset)]
    are_plain = len(found) == len(agent.toolsets) and all(type(each) in _plain_toolsets() for each in found)
    return found if are_plain else []


def _is_plain(agent: Agent[Any, Any]) -> bool:
    """In all that matters as an agent that was given nothing. What is not known here makes it not plain."""
    model = agent.model
    if type(agent) is not Agent or not isinstance(model, Model) or isinstance(model, InstrumentedModel):
        return False
    if vars(Agent).get("_instrument_default") is not False:  # `Agent.instrument_all()` traces every agent
        return False
    own, bare = vars(agent), vars(_bare())
    return all(
        name in _WITHOUT_EFFECT or _is_unset(value) or (name in bare and _is_same(value, bare[name]))
        for name, value in own.items()
    )


def _is_unset(value: object) -> bool:
    """What `override()` sets is in context variables."""
    return isinstance(value, ContextVar) and cast(ContextVar[Any], value).get(None) is None


def _is_same(value: Any, other: Any) -> bool:
    """Things of two kinds are not compared: not every answer to that is yes or no."""
    return type(value) is type(other) and value == other


@cache
def _bare() -> Agent[Any, Any]:
    return Agent()


def _plain_toolsets() -> set[type]:
    return {FunctionToolset, *map(type, _bare().toolsets)}
