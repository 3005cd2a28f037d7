"""What the demo says about what it shows: titles, lines with a label, and remarks on events of the log."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

from outlast.cli.terminal.displays import LinesDisplay, LiveDisplay
from outlast.cli.terminal.screen import Screen, WrappingScreen
from outlast.events.event import Event

STYLES = {
    "you": "cyan",
    "answer": "green",
    "ledger": "yellow",
    "tool": "yellow",
    "task": "yellow",
    "✗": "bold red",
    "start": "bold magenta",
}


class Narrator:
    """Speaks between the events that a screen shows. When it is fast, nothing waits for the reader."""

    def __init__(self, screen: Screen, console: Console, *, is_fast: bool) -> None:
        self.screen = screen
        self._console = console
        self._is_fast = is_fast

    def title(self, words: str) -> None:
        self.screen.line(Text())
        self.screen.line(Text(words, style="bold underline"))

    def line(self, label: str, words: str) -> None:
        self.screen.line(Text.assemble((f"{label} " if label else "", STYLES.get(label, "dim")), words))

    def remark(self, event: Event, words: str) -> None:
        self.screen.line(Text(f"#{event.number} {event.type}: {words}", style="dim"))

    def copyable(self, command: str) -> None:
        """In one line, whatever the width."""
        self.screen.end_saying()
        self._console.print(command, soft_wrap=True)

    def pause(self, seconds: float) -> None:
        """Time to read."""
        if not self._is_fast:
            time.sleep(seconds)


@contextmanager
def narrating(console: Console, *, is_fast: bool, is_live: bool | None = None) -> Generator[Narrator]:
    """On a terminal words and progress are drawn as they come; elsewhere, or if not `is_live`, there are only lines."""
    if is_live is None:
        is_live = console.is_terminal and not console.is_dumb_terminal
    display = LiveDisplay(console) if is_live else LinesDisplay(console)
    with display, WrappingScreen(display) as screen:
        yield Narrator(screen, console, is_fast=is_fast)


def event_line(type_: str, data: dict[str, Any]) -> str:
    """A stored event in one line."""
    match type_:
        case "call.started" | "call.ended":
            said = f"{data['tool']} {data.get('outcome', '')}"
        case "input.accepted" | "input.delivered":
            said = f'"{data["text"]}"'
        case "turn.resumed":
            said = f"attempt {data['attempt']}, dropped {', '.join(data['dropped'])}"
        case _:
            said = ""
    return f"{type_} {said}".strip()
