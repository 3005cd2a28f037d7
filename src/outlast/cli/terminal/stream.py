"""The one way to the terminal: whatever the command writes, text of others does nothing there but be read.

Plain writes go through a filter, and so do the words of the command's own console; only its colours and cursor
movements pass. It is the same for a pipe, whose other end may be a terminal too.
"""

import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from outlast.observe.plain import plain


class PlainStream:
    """A text stream that lets no control characters through. It says that it is no terminal: colours would be lost."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        self.raw.write(plain(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for each in lines:
            self.write(each)

    def isatty(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def guard() -> None:
    """From here on standard output and error of this process are filtered. A character they lack is replaced."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None or isinstance(stream, PlainStream):
            continue
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
        setattr(sys, name, PlainStream(stream))


def answers() -> TextIO:
    """Standard output for answers alone: what else is written there from now on goes to standard error.

    By whomever: prints of the app, in any thread, and programs that it starts. For a process that shows answers until
    it ends.
    """
    out = raw(sys.stdout)
    out.flush()
    try:
        kept = os.dup(out.fileno())
        os.dup2(sys.stderr.fileno(), out.fileno())
    except OSError:  # no file of the system stands behind it
        sys.stdout = sys.stderr
        return out
    return open(kept, "w", encoding=out.encoding, errors="replace", closefd=False)


def raw(stream: TextIO) -> TextIO:
    """The stream behind the filter: for what is asked for exactly as it is."""
    return stream.raw if isinstance(stream, PlainStream) else stream
