"""Ways to reach the MCP server of `mcp_survey`: in a process of its own, over stdio or loopback HTTP."""

import asyncio
import socket
import sys
from asyncio.subprocess import Process, create_subprocess_exec
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset

_START_SECONDS = 30.0


@asynccontextmanager
async def reached_by(
    transport: str, folder: Path, *, is_old: bool = False, **options: Any
) -> AsyncGenerator[MCPToolset[Any]]:
    """A toolset of that server over `stdio` or `http`; the server is gone afterwards. `options` are the toolset's.

    `is_old`: over stdio, in the protocol of before 2026.
    """
    command = ["-m", "tests.support.mcp.mcp_survey", str(folder)]
    root = str(Path(__file__).parents[3])
    if transport == "stdio":
        log = folder / "server.log"
        stdio = StdioTransport(sys.executable, command, cwd=root, keep_alive=False, log_file=log)
        if is_old:
            yield MCPToolset(Client(stdio, mode="legacy", init_timeout=_START_SECONDS))
            return
        yield MCPToolset(
            stdio,
            init_timeout=_START_SECONDS,
            **options,
        )
        return
    port = _free_port()
    with (folder / "server.log").open("w") as log:
        process = await create_subprocess_exec(sys.executable, *command, str(port), cwd=root, stderr=log, stdout=log)
        try:
            await _listens(port, process)
            yield MCPToolset(f"http://127.0.0.1:{port}/mcp", init_timeout=_START_SECONDS, **options)
        finally:
            process.terminate()
            await process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


async def _listens(port: int, process: Process) -> None:
    while True:
        assert process.returncode is None, "the server ended"
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.01)
            continue
        writer.close()
        await writer.wait_closed()
        return
