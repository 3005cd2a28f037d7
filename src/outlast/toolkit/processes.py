"""A command with its children: started in a process group of its own, ended together."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

_TERM_SECONDS = 2.0
_LOOK_SECONDS = 0.02


def descendants(pid: int) -> list[int]:
    """Every living process below this one, also those that left its group."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found: list[int] = []
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            found.append(child)
            waiting.append(child)
    return found


async def has_exited(process: asyncio.subprocess.Process) -> None:
    """Wait for it alone: `process.wait()` also waits for its streams, which a child of it may keep open."""
    while process.returncode is None:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_SECONDS)


async def end_tree(process: asyncio.subprocess.Process) -> None:
    """Ask all of them to end, then kill what is left; returns when none runs."""
    if process.returncode is not None:
        _signal_group(process.pid, signal.SIGKILL)
    else:
        below = descendants(process.pid)
        _signal_all(process.pid, below, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(_TERM_SECONDS):
                await has_exited(process)
        _signal_all(process.pid, below, signal.SIGKILL)
        await has_exited(process)
    transport: Any = getattr(process, "_transport")  # noqa: B009
    transport.close()  # a process that has left the group may still hold the streams


def _signal_all(pid: int, below: list[int], number: signal.Signals) -> None:
    _signal_group(pid, number)
    for each in below:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(each, number)


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        yield int(entry.name), int(fields[1])
