"""Tools that ask for an approval or have their result from outside, made such that their calls reach the hook.

pydantic-ai keeps the calls of these tools to itself: it collects them, and ends the run with them. As plain functions
they pass the gates like any other call; one that no gate decides is handed back to pydantic-ai as what it is.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic_ai import ToolDefinition
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred
from pydantic_ai.toolsets import ToolsetTool

from outlast.calls.call import WantedApproval
from outlast.calls.gates.approval import wait_for_approval
from outlast.calls.gates.gate import CallRequest
from outlast.values import clean

_KEPT_BACK = ("unapproved", "external")


def as_functions(
    tools: Mapping[str, ToolsetTool[Any]], given: dict[str, ToolDefinition]
) -> dict[str, ToolsetTool[Any]]:
    """The same tools, none of them kept back; `given` gets the definitions of those that were, as they were."""
    return {name: _as_function(tool, given) for name, tool in tools.items()}


def _as_function(tool: ToolsetTool[Any], given: dict[str, ToolDefinition]) -> ToolsetTool[Any]:
    definition = tool.tool_def
    if definition.kind not in _KEPT_BACK:
        return tool
    given[definition.name] = definition
    return replace(tool, tool_def=replace(definition, kind="function"))


def hand_back(call: CallRequest) -> None:
    """Raise what such a call asks for, if no gate has answered it and nobody has approved it."""
    if call.is_external:
        raise CallDeferred
    if call.needs_approval and not call.is_approved:
        raise ApprovalRequired


def asking(call: CallRequest, asked: ApprovalRequired | CallDeferred) -> CallRequest:
    """The call for the gates, when its own code has run and asked for something."""
    needs_approval, is_external = isinstance(asked, ApprovalRequired), isinstance(asked, CallDeferred)
    return replace(
        call,
        needs_approval=needs_approval,
        is_external=is_external,
        is_approved=call.is_approved and is_external,
        has_begun=True,
        metadata=None if asked.metadata is None else clean.value(asked.metadata),
    )


def wanted_approval(call: CallRequest, asked: ApprovalRequired) -> WantedApproval:
    """The same when the call is a task by now."""
    wait = wait_for_approval(asking(call, asked))
    return WantedApproval(wait.prompt, wait.details, {"args": call.raw_args, **schema_of(call)})


def schema_of(call: CallRequest) -> dict[str, Any]:
    """What changed arguments are checked by when somebody decides."""
    return {"args_schema": call.definition.parameters_json_schema}
