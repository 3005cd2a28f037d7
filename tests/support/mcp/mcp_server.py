"""A small MCP server over stdio: `python mcp_server.py EFFECTS` notes each time it really measured."""

import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("thermometer", log_level="ERROR")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def measure(city: str) -> str:
    """The temperature of a city."""
    with Path(sys.argv[1]).open("a") as effects:
        effects.write(f"measure {city}\n")
    return f"{city}: 4 degrees"


if __name__ == "__main__":
    server.run("stdio")
