"""The tools of agents, as this process knows them: from the agents it has, and from what workers have recorded."""

from collections.abc import Mapping, Sequence

import structlog
from pydantic_ai import ToolDefinition

from outlast.agents import stored_tool
from outlast.agents.host import AgentHost
from outlast.store.database import Database
from outlast.store.repositories import agent_records
from outlast.values.redact import last_line

log = structlog.get_logger("outlast.tools")


class KnownTools:
    """A process that runs no work connects to nobody: what other toolsets have, such as MCP servers, it reads."""

    def __init__(self, database: Database, hosts: Mapping[str, AgentHost], *, runs_work: bool) -> None:
        self._database = database
        self._hosts = hosts
        self._runs_work = runs_work

    async def find(self, agent: str, name: str) -> ToolDefinition | Sequence[str]:
        """The tool, or the names of those that the agent has instead."""
        host = self._hosts.get(agent)
        found = {} if host is None else {each.name: each for each in host.function_tools()}
        if name not in found and (host is None or host.has_other_toolsets):
            found |= {each.name: each for each in await self._others(agent, host)}
        return found.get(name) or sorted(found)

    async def _others(self, agent: str, host: AgentHost | None) -> Sequence[ToolDefinition]:
        if host is not None and self._runs_work:
            try:
                return await host.declared_tools()
            except Exception as exc:
                log.warning("the tools of an agent cannot be listed now", agent=agent, error=last_line(exc))
        stored = await self._database.read(lambda connection: agent_records.tools_of(connection, agent))
        return [stored_tool.load(each) for each in stored]
