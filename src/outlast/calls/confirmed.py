"""The last moment before a tool's code: is the call still this worker's?"""

from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.toolsets import ToolsetTool, WrapperToolset

from outlast.calls.call import current_call
from outlast.calls.slots import slot_for


@dataclass
class ConfirmedToolset(WrapperToolset[Any]):
    """Around all of an agent's tools, inside of what its capabilities do before and after them.

    After it has asked, only the tool runs, and what the agent itself put around it. A process that freezes in between
    starts the tool when it wakes, whatever became of the call meanwhile; nobody can close that gap.
    """

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        call = current_call.get()
        if call is not None:
            await call.ask()
            if call.is_approved and not ctx.tool_call_approved:
                ctx = replace(ctx, tool_call_approved=True)
        async with slot_for(tool.tool_def):
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
