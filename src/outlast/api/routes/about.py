"""What this server offers: agents, tools, and what was used."""

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic_ai import ToolDefinition

from outlast.api.admission import AdmittedRoute
from outlast.api.auth import Caller
from outlast.api.wiring import COMMON, Runtime, sees_money
from outlast.errors import Forbidden
from outlast.tool_hints import UNSET, hints_of
from outlast.wire.about import AgentAnswer, PeriodAnswer, ToolAnswer, UsageReportAnswer
from outlast.wire.forms import ListOf

router = APIRouter(tags=["about"], responses=COMMON, route_class=AdmittedRoute)


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


@router.get("/usage")
async def get_usage(
    outlast: Runtime,
    caller: Caller,
    owner_id: Annotated[str | None, Query(max_length=200, description="Another owner's, for admins.")] = None,
) -> UsageReportAnswer:
    """What was used today and this week, and how much of the daily limit that is."""
    if owner_id not in (None, caller.owner_id) and caller.role != "admin":
        raise Forbidden("Only an admin may see what others use.")
    report = await outlast.usage_of(owner_id or caller.owner_id)
    is_money_shown = sees_money(caller)
    periods = {name: PeriodAnswer.model_validate(getattr(report, name)) for name in ("today", "week")}
    if not is_money_shown:
        periods = {name: each.model_copy(update={"cost_microdollars": None}) for name, each in periods.items()}
    return UsageReportAnswer(
        owner_id=report.owner_id,
        **periods,
        limit_microdollars=report.limit_microdollars if is_money_shown else None,
        percent=report.percent,
        resets_at=report.resets_at,
        week_resets_at=report.week_resets_at,
        is_money_shown=is_money_shown,
    )


def _hints(tool: ToolDefinition) -> dict[str, Any]:
    """What the tool says about itself, durations in seconds; what it leaves open is left out."""
    said = asdict(hints_of(tool.metadata))
    return {
        name: value.total_seconds() if isinstance(value, timedelta) else value
        for name, value in said.items()
        if value is not UNSET and value is not None
    }
