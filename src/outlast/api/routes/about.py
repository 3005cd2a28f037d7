"""What this server offers: agents, tools, and what was used."""

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from fastapi import APIRouter
from pydantic_ai import ToolDefinition

from outlast.api.auth import Caller
from outlast.api.wiring import COMMON, Runtime
from outlast.tools.hints import UNSET, hints_of
from outlast.wire.about import AgentAnswer, ToolAnswer
from outlast.wire.forms import ListOf

router = APIRouter(tags=["about"], responses=COMMON)


@router.get("/agents")
async def list_agents(outlast: Runtime, _: Caller) -> ListOf[AgentAnswer]:
    """The agents that sessions can have, and the models they may ask for."""
    items = [AgentAnswer(name=name, models=list(models)) for name, models in outlast.agents.items()]
    return ListOf(items=items)


@router.get("/tools")
async def list_tools(outlast: Runtime, _: Caller) -> ListOf[ToolAnswer]:
    """The tools of the agents, as a model is told of them."""
    items = [
        ToolAnswer(
            agent=name,
            name=tool.name,
            description=tool.description,
            parameters=tool.parameters_json_schema,
            hints=_hints(tool),
        )
        for name in outlast.agents
        for tool in await outlast.tools_of(name)
    ]
    return ListOf(items=items)


def _hints(tool: ToolDefinition) -> dict[str, Any]:
    """What the tool says about itself, durations in seconds; what it leaves open is left out."""
    said = asdict(hints_of(tool.metadata))
    return {
        name: value.total_seconds() if isinstance(value, timedelta) else value
        for name, value in said.items()
        if value is not UNSET and value is not None
    }
