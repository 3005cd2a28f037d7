"""Calls of MCP servers: their progress feeds the call's, what they ask is its question, and they may take as long as
the call may.
"""

import sys
from datetime import timedelta
from typing import Any

from pydantic_ai.toolsets import AbstractToolset

from outlast.agents.mcp.elicitation import Elicitations
from outlast.calls.call import RunningCall, current_call


def connect(toolset: AbstractToolset[Any], deadline: timedelta) -> None:
    """Prepare every MCP client below this toolset, once."""
    if "pydantic_ai.mcp" in sys.modules:
        toolset.apply(lambda leaf: _prepare(leaf, deadline))


def _prepare(toolset: AbstractToolset[Any], deadline: timedelta) -> None:
    from pydantic_ai.mcp import MCPToolset

    if not isinstance(toolset, MCPToolset):
        return
    client: Any = toolset.client
    plain = client.call_tool
    if getattr(plain, "is_outlast", False):
        return

    asked = Elicitations()
    if getattr(client, "_elicitation_callback", None) is None:  # else the user's own handler answers
        client.set_elicitation_callback(asked.ask)

    async def call_tool(*args: Any, **options: Any) -> Any:
        call = current_call.get()
        if call is None:
            return await plain(*args, **options)
        options.setdefault("progress_handler", _reporter(call, getattr(client, "_progress_handler", None)))
        options.setdefault("timeout", deadline)
        asked.running.append(call)
        try:
            return await plain(*args, **options)
        finally:
            asked.running.remove(call)

    call_tool.is_outlast = True  # pyright: ignore[reportFunctionMemberAccess]
    client.call_tool = call_tool


def _reporter(call: RunningCall, users_own: Any) -> Any:
    """Reports to the call, and to the handler that the user gave the client."""

    async def report(progress: float, total: float | None, message: str | None) -> None:
        call.channel.progress({"current": progress, "total": total, "unit": None, "label": message})
        if users_own is not None:
            await users_own(progress, total, message)

    return report
