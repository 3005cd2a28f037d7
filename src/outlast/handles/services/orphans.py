"""Why a schedule can no longer do what it was made for."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

from pydantic_ai import ToolDefinition
from sqlalchemy.exc import NoResultFound

from outlast.handles.services.known_agents import KnownAgents
from outlast.handles.services.known_tools import KnownTools
from outlast.store.database import Database
from outlast.store.repositories import sessions
from outlast.store.repositories.schedules import Schedule

AGENT_GONE = "agent_gone"
TOOL_GONE = "tool_gone"


@dataclass(frozen=True, slots=True)
class Orphans:
    """`only`: the agents of a process beside which there is no other; None where others may have more."""

    database: Database
    agents: KnownAgents
    tools: KnownTools
    only: Collection[str] | None

    async def why(self, schedule: Schedule) -> str | None:
        """Asked just before it fires. That no worker is there for a while is no reason: what fires waits for one."""
        find = partial(sessions.agent_of, session_id=schedule.session_id)
        try:
            agent = await self.database.read(find, is_single=True)
        except NoResultFound:
            return None  # its session was deleted in this moment, and it goes with it
        is_there = agent in self.only if self.only is not None else await self.agents.find_models(agent) is not None
        if not is_there:
            return AGENT_GONE
        if schedule.tool is not None and not isinstance(await self.tools.find(agent, schedule.tool), ToolDefinition):
            return TOOL_GONE
        return None
