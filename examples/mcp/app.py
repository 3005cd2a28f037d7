"""An agent with the tools of an MCP server. A slow one goes on in the background, and its end wakes the agent."""

import asyncio
import sys
from pathlib import Path

from pydantic_ai import Agent

from outlast import Outlast, hints
from outlast.testing import ScriptedModel, call

try:
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai.mcp import MCPToolset
except ImportError as exc:
    raise SystemExit('MCP servers need an extra of Outlast. In its clone: pip install ".[mcp]"') from exc

transport = StdioTransport(sys.executable, [str(Path(__file__).with_name("river_server.py"))])
# A turn whose servers do not start in time fails; five seconds, the default, are little on a busy machine.
server = MCPToolset(transport, init_timeout=60)
tools = server.with_metadata(**hints(budget=1))  # a turn waits a second for each call of this server

# The scripted model needs no key: put your own in its place, such as "openai:gpt-5".
model = ScriptedModel(
    [
        call("rivers"),
        call("survey", river="Glomma"),
        "I am measuring the Glomma. Ask me anything meanwhile.",
        "The Glomma is 2.4 m deep.",
    ]
)
app = Outlast(Agent(model, name="river", toolsets=[tools]), database="river.db")


async def main() -> None:
    async with app as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("How deep is the Glomma?")
        print((await sent.outcome()).text)
        [task] = await session.tasks()
        print("in the background:", task.tool)
        task = await outlast.tasks.wait(task.id)
        print(task.state.value, task.result)
        woken = await session.settled()
        print(woken.text if woken else "nothing was said")


if __name__ == "__main__":
    asyncio.run(main())
