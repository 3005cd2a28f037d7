"""What a session's constraints make of tools before they are called: which the model is offered, and how.

A call that is refused here is refused before its arguments are validated: their faults would cost the model one of its
retries.
"""

from collections.abc import Container
from dataclasses import replace
from typing import Any

from pydantic_ai import ToolDefinition
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.models import ModelRequestContext

from outlast.calls.gates.binding import bound_args, shown_bound
from outlast.transitions.sessions.constraints import Chain

DENIED = "The tool {tool!r} was not run: this session denies it."


def as_constrained(request: ModelRequestContext, chain: Chain, control: Container[str]) -> ModelRequestContext:
    """A request with the tools that may be allowed. `control`: names of the runtime's own."""
    given = request.model_request_parameters
    offered = [each for each in given.function_tools if _is_offered(chain, each.name, control)]
    if len(offered) < len(given.function_tools):
        request = replace(request, model_request_parameters=replace(given, function_tools=offered))
    return request if chain.binding is None else shown_bound(request, chain.binding)


def constrained_args(chain: Chain, tool: ToolDefinition, args: Any, control: Container[str] = ()) -> Any:
    """The arguments to validate, with those of the resource that the session is bound to. Raises for a refused call."""
    if not _is_offered(chain, tool.name, control):
        raise ToolFailed(chain.refusal(tool.name, args) or DENIED.format(tool=tool.name))
    is_bound = chain.binding is not None and tool.name not in control
    return bound_args(tool, args, chain.binding) if is_bound and chain.binding is not None else args


def _is_offered(chain: Chain, tool: str, control: Container[str]) -> bool:
    """The runtime's own tools are there unless they are denied: a list that allows is about the agent's."""
    return not chain.denies_all(tool) if tool in control else chain.offers(tool)
