"""How a process that runs tools ends: their threads do not delay it, and a second signal forces the exit."""

import asyncio
import atexit
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

import typer

SIGNAL_EXIT_BASE = 128
"""With the number of the signal: the exit code of a process that a signal ended."""
_SAME_SIGNAL_SECONDS = 0.5
"""One Ctrl-C may reach a process twice: from the terminal, and from the process that started it."""
_ATEXIT_SECONDS = 5.0
"""How long `atexit` handlers may take where threads are left behind."""


class ShutdownSignals:
    """The first signal starts a graceful shutdown; a later one ends the process at once, whatever still runs.

    That is safe at any time: what counts is on disk, and the next start reports what was interrupted.
    """

    def __init__(self) -> None:
        self.before_forced_exit: Callable[[], None] = lambda: None
        """What is still done before a forced exit; it must not take long."""
        self._first_at: float | None = None

    def received(self, number: int) -> None:
        """Returns for the first signal, and does not return for a later one."""
        now = time.monotonic()
        self._first_at = self._first_at or now
        if now - self._first_at > _SAME_SIGNAL_SECONDS:
            self.before_forced_exit()
            os._exit(SIGNAL_EXIT_BASE + number)


def run_and_exit(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Run `work` to its end and exit with the code that it returns, although threads of tools may still run.

    Whatever `work` opened is closed by then. Python itself would wait for those threads.
    """
    with asyncio.Runner() as runner:
        code = runner.run(work)
        if _has_other_threads():
            _exit_without_waiting(code)
    raise typer.Exit(code)


def _has_other_threads() -> bool:
    """Whether Python would wait for a thread, idle or not: nobody can tell those apart."""
    return any(
        each is not threading.main_thread() and not each.daemon and each.is_alive() for each in threading.enumerate()
    )


def _exit_without_waiting(code: int) -> NoReturn:
    """Run the `atexit` handlers for a limited time, then end the process and every thread in it."""
    last = threading.Thread(target=atexit._run_exitfuncs, name="outlast-atexit", daemon=True)  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue, reportUnknownArgumentType]
    last.start()
    last.join(_ATEXIT_SECONDS)
    _flush()
    os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # nobody reads any more
            continue
