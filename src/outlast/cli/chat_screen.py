"""Where a chat is shown: plain lines anywhere, or a terminal with a prompt and what is going on below the text."""

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from outlast.cli.line_editor import LineEditor

PROMPT = "› "
REASONING = "dim italic"
_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"


class Screen(Protocol):
    """What a chat needs to show itself. Use it in `with`: the terminal is given back on leaving."""

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

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class PlainScreen:
    """Lines one after another: for pipes, files and terminals that cannot move their cursor."""

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


class LiveScreen:
    """A terminal: finished lines scroll up; below them the line being said, what is going on, and the prompt."""

    has_status = True

    def __init__(self, console: Console, editor: LineEditor) -> None:
        self._console = console
        self.editor = editor
        self._rows: Sequence[Text] = ()
        self._words = ""
        self._style = ""
        # What tools print goes through it too, so that it stands above the prompt.
        self._live = Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop")

    def line(self, text: Text) -> None:
        self.end_saying()
        self._console.print(text)

    def say(self, words: str, *, is_reasoning: bool = False) -> None:
        style = REASONING if is_reasoning else ""
        if style != self._style:
            self.end_saying()
        self._style = style
        *whole, self._words = (self._words + words).split("\n")
        for each in whole:
            self._console.print(Text(each, style=style))
        while (cut := fitting(self._words, self._console.width)) < len(self._words):
            self._console.print(Text(self._words[:cut].rstrip(), style=style))
            self._words = self._words[cut:]
        self.draw()

    def end_saying(self) -> None:
        if self._words:
            words, self._words = self._words, ""
            self._console.print(Text(words, style=self._style))
        self._style = ""

    def status(self, rows: Sequence[Text]) -> None:
        self._rows = rows
        self.draw()

    def draw(self) -> None:
        """Show the lower part as it is now."""
        said = [Text(self._words, style=self._style)] if self._words else []
        room = max(1, self._console.height - 4)
        self._live.update(Group(*said, *self._rows[:room], self._prompt()), refresh=True)

    def _prompt(self) -> Text:
        editor = self.editor
        under = editor.text[editor.cursor : editor.cursor + 1]
        is_at_character = under != "" and under != "\n"
        return Text.assemble(
            (PROMPT, "bold cyan"),
            editor.text[: editor.cursor],
            (under if is_at_character else " ", "reverse"),
            editor.text[editor.cursor + is_at_character :],
            overflow="fold",
        )

    def __enter__(self) -> Self:
        self._live.start()
        self._console.file.write(_PASTE_ON)
        self.draw()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_saying()
        self._live.stop()
        self._console.file.write(_PASTE_OFF)
        self._console.file.flush()


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
