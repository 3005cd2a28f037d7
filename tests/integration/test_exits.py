"""What ends a process and what does not: tools that exit, servers inside of it that do, and Ctrl-C."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

from outlast.testing import ScriptedModel, call
from tests.support.logs.histories import return_of
from tests.support.turns.runtime import Runtime

_BUSY = """
import asyncio, sys, time
from pydantic_ai import Agent
from outlast import Outlast
from outlast.testing import ScriptedModel, call

async def busy() -> str:
    print("busy", flush=True)
    while True:
        time.sleep(0.01)

async def main() -> None:
    agent = Agent(ScriptedModel([call("busy"), "Done."]), tools=[busy])
    async with Outlast(agent, database=sys.argv[1]) as outlast:
        await (await outlast.sessions.create()).ask("Be busy.")

asyncio.run(main())
"""


async def test_a_tool_of_an_mcp_server_in_this_process_that_exits_fails_its_call(tmp_path: Path) -> None:
    """A5: its server runs it in coroutines that nobody here started."""
    server = MCPServer("exits")

    @server.tool()
    async def leave() -> str:  # pyright: ignore[reportUnusedFunction]
        sys.exit()

    @server.tool()
    async def stay() -> str:  # pyright: ignore[reportUnusedFunction]
        return "here"

    model = ScriptedModel([call("leave", call_id="c1"), call("stay", call_id="c2"), "Done."])
    agent = Agent(model, toolsets=[MCPToolset(server)], name="agent")
    async with Runtime(tmp_path / "app.db")(agent=agent) as outlast:
        session = await outlast.sessions.create()
        assert (await session.ask("Leave.")).text == "Done."
        assert return_of("c1", await session.history()).outcome != "success"


async def test_ctrl_c_ends_a_program_whose_tool_is_busy(tmp_path: Path) -> None:
    """The second one is raised in the tool itself, and means the program all the same."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _BUSY, str(tmp_path / "app.db"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    assert (await child.stdout.readline()).strip() == b"busy"
    child.send_signal(signal.SIGINT)
    await asyncio.sleep(0.2)  # two at once are one
    child.send_signal(signal.SIGINT)
    _, said = await asyncio.wait_for(child.communicate(), 60)
    assert child.returncode != 0
    assert b"KeyboardInterrupt" in said
