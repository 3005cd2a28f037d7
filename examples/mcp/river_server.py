"""A small MCP server over stdio: one tool that answers at once, and one that takes its time and says how far it is."""

import anyio
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("river", log_level="ERROR")


@server.tool()
def rivers() -> list[str]:
    """The rivers that can be surveyed."""
    return ["Glomma", "Tana"]


@server.tool()
async def survey(river: str, context: Context) -> str:
    """Measure the depth of a river. Takes a while."""
    for place in range(1, 5):
        await anyio.sleep(0.5)
        await context.report_progress(place, 4, f"place {place}")
    return f"{river}: 2.4 m deep"


if __name__ == "__main__":
    server.run("stdio")
