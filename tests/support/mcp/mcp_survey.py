"""A stock MCP server with slow tools. Run as a program it serves stdio, or HTTP on a loopback port.

Files in its folder are its gates: it writes `started`, waits for `go`, and writes `canceled` if it is cancelled.
`cruise` also waits for `halfway`, and then says how far it is.
"""

import sys
from pathlib import Path
from typing import Annotated

import anyio
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel


class Seats(BaseModel):
    count: int


async def ask_seats(river: str) -> Elicit[Seats]:
    """Asked within the call by new clients' protocol, over the connection by old ones'."""
    return Elicit(f"How many seats on the {river}?", Seats)


def serve(folder: Path, port: int | None) -> None:
    server = MCPServer("survey")

    @server.tool()
    async def survey(river: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Measure a river."""
        (folder / "started").touch()
        try:
            await appears(folder / "go")
        except anyio.get_cancelled_exc_class():
            (folder / "canceled").touch()
            raise
        return f"{river}: 2.4 m"

    @server.tool()
    async def cruise(river: str, context: Context) -> str:  # pyright: ignore[reportUnusedFunction]
        """Go along a river."""
        (folder / "started").touch()
        await appears(folder / "halfway")
        await context.report_progress(2, 4, f"on the {river}")
        await appears(folder / "go")
        return f"{river}: all seen"

    @server.tool()
    async def book(seats: Annotated[ElicitationResult[Seats], Resolve(ask_seats)], river: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Book a boat."""
        if not isinstance(seats, AcceptedElicitation):
            return f"no boat on the {river}"
        with (folder / "booked").open("a") as booked:
            booked.write(f"{river}\n")
        return f"{seats.data.count} seats on the {river}"

    if port is None:
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=port)


async def appears(file: Path) -> None:
    """Wait until another process has made a file."""
    while True:
        if await anyio.Path(file).exists():
            return
        await anyio.sleep(0.01)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
