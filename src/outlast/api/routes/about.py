"""What this server offers: agents, tools, and what was used."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from fastapi import APIRouter
from pydantic import JsonValue
from pydantic_ai import ToolDefinition

from outlast.api.auth import Caller
from outlast.api.models import Answer, ListOf, UsageAnswer
from outlast.api.wiring import COMMON, Runtime
from outlast.tools.hints import UNSET, hints_of

router = APIRouter(tags=["about"], responses=COMMON)


class AgentAnswer(Answer):
    name: str
    models: list[str]


class ToolAnswer(Answer):
    """A tool of an agent, with what Outlast was told about it."""

    agent: str
    name: str
    description: str | None
    parameters: dict[str, JsonValue]
    hints: dict[str, JsonValue]


class PeriodAnswer(UsageAnswer):
    """Money is told on a single-user server and to admins; others see `percent` of their limit."""

    unpriced_requests: int


class UsageReportAnswer(Answer):
    today: PeriodAnswer
    week: PeriodAnswer
    limit_microdollars: int | None
    percent: float | None
    resets_at: datetime


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
