"""What a terminal play shows: lines with a speaker, and words that appear as they are said.

On a terminal words appear one by one; elsewhere a speech is one line, printed when it is over.
"""

import time
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

LABEL_WIDTH = 7
STYLES = {
    "you": "cyan",
    "agent": "green",
    "answer": "green",
    "tool": "yellow",
    "ledger": "yellow",
    "task": "yellow",
    "kill": "bold red",
    "start": "bold magenta",
    "log": "dim",
}


class Speech:
    """One speaker's words, growing. Use it in `with`; they stay when it ends."""

    def __init__(self, console: Console, speaker: str, *, is_live: bool) -> None:
        self.words = ""
        self._console = console
        self._speaker = speaker
        self._live = Live(console=console, auto_refresh=False, transient=True) if is_live else None

    def add(self, words: str) -> None:
        self.words += words
        if self._live is not None:
            self._live.update(row(self._speaker, self.words), refresh=True)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        if self.words:
            self._console.print(row(self._speaker, self.words))


class Meter:
    """A line that is drawn again in place. Use it in `with`; it is gone when it ends."""

    def __init__(self, console: Console, speaker: str) -> None:
        self._speaker = speaker
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def set(self, words: str) -> None:
        self._live.update(row(self._speaker, words), refresh=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()


class Stage:
    """Where the play is shown. Without a pace nothing waits for the reader."""

    def __init__(self, console: Console, *, is_fast: bool, is_live: bool | None = None) -> None:
        self.console = console
        self._is_fast = is_fast
        self.is_live = console.is_terminal and not console.is_dumb_terminal if is_live is None else is_live

    def title(self, words: str) -> None:
        self.console.print()
        self.console.print(Text(words, style="bold underline"))

    def line(self, speaker: str, words: str | Text) -> None:
        self.console.print(row(speaker, words))

    def speech(self, speaker: str) -> Speech:
        return Speech(self.console, speaker, is_live=self.is_live)

    def meter(self, speaker: str) -> Meter:
        """Only where `is_live`."""
        return Meter(self.console, speaker)

    def pause(self, seconds: float) -> None:
        """Time to read."""
        if not self._is_fast:
            time.sleep(seconds)


def row(speaker: str, words: str | Text) -> RenderableType:
    """A speaker beside words that wrap below themselves, at any width."""
    table = Table.grid(padding=(0, 1))
    table.add_column(width=LABEL_WIDTH, justify="right", style=STYLES.get(speaker, ""), no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    table.add_row(speaker, words if isinstance(words, Text) else Text(words))
    return table
