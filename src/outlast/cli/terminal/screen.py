"""Where a session is shown: a stream of plain text, or a display that can be drawn anew below finished lines."""

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

REASONING = "dim italic"
_OWN_ROWS = 4
"""Rows of a terminal that the status leaves free: for what is typed and said."""


class Screen(Protocol):
    """What a view of a session needs."""

    @property
    def has_status(self) -> bool:
        """Whether `status` is seen; else what goes on must be said in lines."""
        ...

    def line(self, text: Text) -> None:
        """A line that stays."""
        ...

    def say(self, words: str, *, is_reasoning: bool = False) -> None:
        """Words that go on where the last ones ended."""
        ...

    def end_saying(self) -> None: ...

    def status(self, rows: Sequence[Text]) -> None:
        """What is going on now; replaces what was there."""
        ...


class PlainScreen:
    """Text as it comes, without cursor movements and not wrapped: for pipes, files and dumb terminals.

    Use it in `with`: the last line is ended.
    """

    has_status = False

    def __init__(self, console: Console, *, notes: Console | None = None) -> None:
        """`notes`: where lines go if not to the same place as the answer; reasoning is then left out."""
        self._console = console
        self._notes = notes or console
        self._is_saying = False

    def line(self, text: Text) -> None:
        if self._notes is self._console:
            self.end_saying()
        self._notes.print(text, soft_wrap=True)

    def say(self, words: str, *, is_reasoning: bool = False) -> None:
        if is_reasoning and self._notes is not self._console:
            return
        self._is_saying = True
        self._console.print(Text(words, style=REASONING if is_reasoning else ""), end="", soft_wrap=True)

    def end_saying(self) -> None:
        if self._is_saying:
            self._console.print()
            self._is_saying = False

    def status(self, rows: Sequence[Text]) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_saying()


class Display(Protocol):
    """Lines that scroll up, and rows below them that can be replaced."""

    @property
    def can_redraw(self) -> bool:
        """Whether `draw` shows anything."""
        ...

    @property
    def width(self) -> int: ...

    @property
    def height(self) -> int: ...

    def print(self, text: Text) -> None:
        """A line that stays, above the rows."""
        ...

    def draw(self, rows: Sequence[Text]) -> None: ...


class WrappingScreen:
    """Finished lines, wrapped between words, above the line being said and what is going on.

    Use it in `with`: what is being said is finished at the end.
    """

    def __init__(self, display: Display) -> None:
        self.has_status = display.can_redraw
        self._display = display
        self._rows: Sequence[Text] = ()
        self._words = ""
        self._style = ""

    def line(self, text: Text) -> None:
        self.end_saying()
        self._display.print(text)

    def say(self, words: str, *, is_reasoning: bool = False) -> None:
        style = REASONING if is_reasoning else ""
        if style != self._style:
            self.end_saying()
        self._style = style
        *whole, self._words = (self._words + words).split("\n")
        for each in whole:
            self._display.print(Text(each, style=style))
        while (cut := fitting(self._words, self._display.width)) < len(self._words):
            self._display.print(Text(self._words[:cut].rstrip(), style=style))
            self._words = self._words[cut:]
        self._draw()

    def end_saying(self) -> None:
        if self._words:
            words, self._words = self._words, ""
            self._draw()
            self._display.print(Text(words, style=self._style))
        self._style = ""

    def status(self, rows: Sequence[Text]) -> None:
        self._rows = rows
        self._draw()

    def _draw(self) -> None:
        said = [Text(self._words, style=self._style)] if self._words else []
        room = max(1, self._display.height - _OWN_ROWS)
        self._display.draw([*said, *self._rows[:room]])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_saying()


def fitting(words: str, width: int) -> int:
    """How many characters of this line stand in its first row; all of them if it fits. Breaks between words."""
    if cell_len(words) <= width:
        return len(words)
    at = used = 0
    while used + cell_len(words[at]) <= width:
        used += cell_len(words[at])
        at += 1
    space = words.rfind(" ", 0, at + 1)
    return space + 1 if space > 0 else max(1, at)
