"""A text stream that is shown line by line, in the thread of the event loop."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO


class LineStream:
    """Takes writes from any thread; `show` is called in the loop's. Order is kept within a thread.

    In all other respects it is the stream behind it, but no terminal: colours would be lost.
    """

    def __init__(self, behind: TextIO, loop: asyncio.AbstractEventLoop, show: Callable[[str], None]) -> None:
        self._behind = behind
        self._loop = loop
        self._show = show
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._rest = ""

    def write(self, text: str) -> int:
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
        self._pass_on(lines)
        return len(text)

    def flush(self) -> None:
        """What stands in an unfinished line is shown as one."""
        with self._lock:
            rest, self._rest = self._rest, ""
        self._pass_on([rest] if rest else [])

    def isatty(self) -> bool:
        return False

    def _pass_on(self, lines: list[str]) -> None:
        for line in lines:
            if threading.get_ident() == self._thread:
                self._show(line)
            else:
                with suppress(RuntimeError):  # the loop is closed: the process ends
                    self._loop.call_soon_threadsafe(self._show, line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._behind, name)
