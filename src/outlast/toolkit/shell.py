"""A shell command as a tool: its output streams, and a cancel ends it with all its children.

It is not a sandbox: the command runs with the rights of this process.
"""

import asyncio
import codecs
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic_ai import Tool

from outlast.calls.call import output
from outlast.tool_hints import UNSET, Unset, hints
from outlast.toolkit.processes import end_tree

_CHUNK = 32 * 1024
_SHOWN = 8 * 1024


def shell_tool(
    *, folder: Path | str | None = None, budget: timedelta | float | Unset | None = UNSET, name: str = "run_command"
) -> Tool[Any]:
    """A tool that runs one shell command in `folder`. Give it only to agents you trust with this machine."""

    async def run_command(command: str) -> dict[str, Any]:
        """Run a shell command. The result has its exit code and the end of its output.

        Args:
            command: What to run, as typed into a shell.
        """
        return await run(command, folder=folder)

    return Tool(run_command, name=name, metadata=hints(budget=budget))


async def run(command: str, *, folder: Path | str | None = None) -> dict[str, Any]:
    process = await asyncio.create_subprocess_shell(
        command,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        tail, total = await _pump(process)
        code = await process.wait()
    finally:
        await end_tree(process)
    result: dict[str, Any] = {"exit_code": code, "output": tail}
    if total > len(tail):
        result["left_out"] = f"{total - len(tail)} characters before this; read them with read_output"
    return result


async def _pump(process: asyncio.subprocess.Process) -> tuple[str, int]:
    """Pass the output on as it comes; keep its end for the result."""
    assert process.stdout is not None
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    tail, total = "", 0
    while chunk := await process.stdout.read(_CHUNK):
        text = decoder.decode(chunk)
        output(text)
        total += len(text)
        tail = (tail + text)[-_SHOWN:]
    return tail, total
