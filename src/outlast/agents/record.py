"""What this worker writes down about its agents, for processes that have not got them."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

import structlog
from pydantic_ai import ToolDefinition

from outlast.agents import stored_tool
from outlast.agents.host import AgentHost
from outlast.errors import StoreUnavailable
from outlast.store.database import Database, retry_while_unavailable
from outlast.store.repositories import agent_records
from outlast.store.unit import Unit

log = structlog.get_logger("outlast.engine")


class AgentRecorder:
    """Function tools are recorded at the start. What other toolsets have, such as MCP servers, when it is listed.

    `own` are the tools of the runtime: they are listed with every agent's, and are not the agent's.
    """

    def __init__(self, database: Database, hosts: Mapping[str, AgentHost], *, own: frozenset[str]) -> None:
        self._own = own
        self._database = database
        self._hosts = hosts
        self._listed: dict[str, Sequence[ToolDefinition]] = {}
        self._news = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when the agents are recorded."""
        await self._database.transaction(self._record, name="record agents")
        for name, host in self._hosts.items():
            host.when_listed = partial(self._was_listed, name)
        self._writing = asyncio.create_task(self._write(), name="agent recorder")

    async def close(self) -> None:
        for host in self._hosts.values():
            host.when_listed = None
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait({self._writing})

    def _record(self, unit: Unit) -> None:
        for name, host in sorted(self._hosts.items()):
            tools, models = host.function_tools(), sorted(host.models)
            agent_records.record(
                unit,
                name,
                version=stored_tool.version_of(tools, models),
                models=models,
                tools=[stored_tool.dump(each) for each in tools],
                has_others=host.has_other_toolsets,
            )

    def _was_listed(self, name: str, tools: Sequence[ToolDefinition]) -> None:
        self._listed[name] = tools
        self._news.set()

    async def _write(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            listed, self._listed = self._listed, {}
            for name, tools in sorted(listed.items()):
                known = self._own | {each.name for each in self._hosts[name].function_tools()}
                others = [stored_tool.dump(each) for each in tools if each.name not in known]
                if others:
                    await self._add(name, others)

    async def _add(self, name: str, tools: Sequence[agent_records.Tool]) -> None:
        add = partial(agent_records.add_listed, agent=name, tools=tools)
        try:
            await retry_while_unavailable(lambda: self._database.transaction(add, name="record tools"))
        except StoreUnavailable as exc:  # closed: the next process records what is listed then
            log.info("listed tools were not recorded", agent=name, error=str(exc))
