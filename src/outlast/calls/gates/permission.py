"""Permissions: a call runs only if its session allows it, and each ancestor of that does."""

from collections.abc import Container
from dataclasses import replace
from typing import Any

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.models import ModelRequestContext

from outlast.calls.gates.gate import RUN, Answer, CallRequest, Verdict
from outlast.calls.gates.live_constraints import LiveConstraints
from outlast.transitions.constraints import Chain

DENIED = "The tool {tool!r} was not run: this session denies it."


class PermissionGate:
    """A gate that looks at the arguments as the tool would get them."""

    def __init__(self, constraints: LiveConstraints) -> None:
        self._constraints = constraints

    async def admit(self, call: CallRequest) -> Verdict:
        chain = await self._constraints.now()
        if not chain.permissions:
            return RUN
        refusal = chain.refusal(call.tool, call.plain_args)
        return RUN if refusal is None else Answer(failure=refusal)


def only_offered(request: ModelRequestContext, chain: Chain, control: Container[str]) -> ModelRequestContext:
    """A request without the tools that no arguments would make allowed. `control`: names of the runtime's own."""
    given = request.model_request_parameters
    offered = [each for each in given.function_tools if is_offered(chain, each.name, control)]
    if len(offered) == len(given.function_tools):
        return request
    return replace(request, model_request_parameters=replace(given, function_tools=offered))


def check_offered(chain: Chain, tool: str, args: Any, control: Container[str]) -> None:
    """Raises before anybody reads the arguments: faults in them would cost the model one of its retries."""
    if not is_offered(chain, tool, control):
        raise ToolFailed(chain.refusal(tool, args) or DENIED.format(tool=tool))


def is_offered(chain: Chain, tool: str, control: Container[str]) -> bool:
    """The runtime's own tools are there unless they are denied: a list that allows is about the agent's."""
    return not chain.denies_all(tool) if tool in control else chain.offers(tool)
