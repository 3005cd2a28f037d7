"""What this server offers: agents, tools, and what was used."""

from typing import Annotated

from fastapi import APIRouter, Query

from outlast.agents.stored_tool import shown_hints
from outlast.api.admission import AdmittedRoute
from outlast.api.auth import Caller
from outlast.api.wiring import COMMON, Runtime, sees_money
from outlast.errors import Forbidden
from outlast.wire.about import AgentAnswer, PeriodAnswer, ToolAnswer, UsageReportAnswer
from outlast.wire.forms import ListOf

router = APIRouter(tags=["about"], responses=COMMON, route_class=AdmittedRoute)


@router.get("/agents")
async def list_agents(outlast: Runtime, _: Caller) -> ListOf[AgentAnswer]:
    """The agents that sessions can have, and the models they may ask for."""
    return ListOf(items=[AgentAnswer.of(each) for each in await outlast.known_agents()])


@router.get("/tools")
async def list_tools(outlast: Runtime, _: Caller) -> ListOf[ToolAnswer]:
    """The tools of the agents, as a model is told of them; of an agent that only workers have, as they recorded it."""
    items = [
        ToolAnswer(
            agent=agent.name,
            name=tool.name,
            description=tool.description,
            parameters=tool.parameters_json_schema,
            hints=shown_hints(tool),
        )
        for agent in await outlast.known_agents()
        for tool in await outlast.tools_of(agent.name)
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
