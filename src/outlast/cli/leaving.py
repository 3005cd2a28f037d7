"""The end of a process that runs tools: what a tool left behind does not keep it, and a second Ctrl-C ends it."""

import asyncio
import atexit
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

import typer

AT_ONCE = 128
"""With the number of the signal: the exit code of a process that a signal ended."""
_SAME_SECONDS = 0.5
"""One Ctrl-C may reach a process twice: from the terminal, and from the process that started it."""
_LAST_SECONDS = 5.0
"""How long what is registered with `atexit` may take where threads are left behind."""


class Insistence:
    """What a signal means to a process that is already told to leave: leave at once, whatever still runs.

    That may be done at any time: what counts is on disk, and the next start tells what was interrupted.
    """

    def __init__(self) -> None:
        self.at_once: Callable[[], None] = lambda: None
        """What is still done then; it must not take long."""
        self._first: float | None = None

    def note(self, number: int) -> None:
        """The first signal asks, and this comes back; from a later one it does not."""
        now = time.monotonic()
        self._first = self._first or now
        if now - self._first > _SAME_SECONDS:
            self.at_once()
            os._exit(AT_ONCE + number)


def run(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Run it to its end and leave with the exit code that it gives, although threads of tools may still be at work.

    Whatever `work` opened is closed by then. Python itself would wait for those threads.
    """
    with asyncio.Runner() as runner:
        code = runner.run(work)
        if has_threads():
            leave(code)
    raise typer.Exit(code)


def has_threads() -> bool:
    """Whether Python would wait for a thread: for one that is idle too, since nobody can tell those apart."""
    return any(
        each is not threading.main_thread() and not each.daemon and each.is_alive() for each in threading.enumerate()
    )


def leave(code: int) -> NoReturn:
    """Now, after what the program has registered for its end; a tool's thread ends with the process."""
    last = threading.Thread(target=atexit._run_exitfuncs, name="outlast-last", daemon=True)  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue, reportUnknownArgumentType]
    last.start()
    last.join(_LAST_SECONDS)
    _flush()
    os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # nobody reads any more
            continue
