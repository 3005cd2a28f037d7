"""A shell command as a tool: its output streams, and a cancel ends it with all its children.

It is not a sandbox: the command runs with the rights of this process.
"""

import asyncio
import codecs
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pydantic_ai import Tool, ToolDefinition

from outlast.calls.call import output
from outlast.tool_hints import UNSET, Phase, Unset, Words, hints
from outlast.toolkit.processes import end_tree, has_exited

_MARK = "outlast_shell"
_CHUNK = 32 * 1024
_SHOWN = 8 * 1024
_LEFT_OPEN_SECONDS = 1.0
"""How long a stream may stay open after the command: a child that goes on may hold it."""


def shell_tool(
    *,
    folder: Path | str | None = None,
    timeout: timedelta | float | None = None,
    budget: timedelta | float | Unset | None = UNSET,
    name: str = "run_command",
) -> Tool[Any]:
    """A tool that runs one shell command in `folder`. Give it only to agents you trust with this machine.

    It is no sandbox. A server that others can reach does not start with it, unless the setting `allow_shell` is true.
    `timeout` is the longest that a command may run; the model may ask for less.
    """
    most = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout

    async def run_command(command: str, timeout_seconds: Annotated[float, Field(gt=0)] | None = None) -> dict[str, Any]:
        """Run a shell command. The result has its exit code, and the ends of what it wrote to stdout and stderr.

        Args:
            command: What to run, as typed into a shell. What it leaves running in the background is ended with it.
            timeout_seconds: After this it is ended with all that it started.
        """
        limits = [each for each in (most, timeout_seconds) if each is not None]
        return await run(command, folder=folder, timeout=min(limits, default=None))

    narrate: Mapping[Phase, Words] = {
        "running": "Running {command}",
        "done": "Ran {command}",
        "failed": "Could not run {command}",
    }
    return Tool(run_command, name=name, metadata={**hints(budget=budget, narrate=narrate), _MARK: True})


def is_shell(tool: ToolDefinition) -> bool:
    """Whether it runs commands on this machine: it is, or was made of, a `shell_tool`."""
    return bool((tool.metadata or {}).get(_MARK))


async def run(command: str, *, folder: Path | str | None = None, timeout: float | None = None) -> dict[str, Any]:
    """Run it to its end. However this is left, nothing of it goes on running."""
    process = await asyncio.create_subprocess_shell(
        command,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    streams = (_Stream("stdout", process.stdout), _Stream("stderr", process.stderr))
    reading = [asyncio.create_task(each.read(), name=f"{each.name} of a command") for each in streams]
    is_over_time = False
    try:
        try:
            async with asyncio.timeout(timeout):
                await _ended(process, reading)
        except TimeoutError:
            is_over_time = True
    finally:
        await end_tree(process)
        for each in reading:
            each.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
    result: dict[str, Any] = {"exit_code": None if is_over_time else process.returncode}
    for each in streams:
        result |= each.told
    if is_over_time:
        result["timed_out"] = f"It was ended after {timeout:g} seconds, with all that it had started."
    return result


async def _ended(process: asyncio.subprocess.Process, reading: Sequence[asyncio.Task[None]]) -> None:
    """A stream that a child keeps open is not waited for."""
    await has_exited(process)
    await asyncio.wait(reading, timeout=_LEFT_OPEN_SECONDS)


class _Stream:
    """One of the two streams of a command: passed on as it comes; its end is kept for the result."""

    def __init__(self, name: str, source: asyncio.StreamReader | None) -> None:
        assert source is not None
        self.name = name
        self._source = source
        self._tail = ""
        self._total = 0

    async def read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        while chunk := await self._source.read(_CHUNK):
            text = decoder.decode(chunk)
            output(text)
            self._total += len(text)
            self._tail = (self._tail + text)[-_SHOWN:]

    @property
    def told(self) -> dict[str, Any]:
        left = self._total - len(self._tail)
        more = {f"{self.name}_left_out": f"{left} characters before this; read them with read_output"} if left else {}
        return {self.name: self._tail, **more}
