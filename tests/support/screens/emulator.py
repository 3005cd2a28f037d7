"""What a terminal shows of the bytes it is sent: rows of cells that are written, moved over and erased."""

import re

from rich.cells import cell_len

_TOKEN = re.compile(r"\x1b\[([0-9;?]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[^\[\]]|[^\x1b]")
_TAB = 8


class Emulator:
    """As much of a terminal as our programs use. `transcript` has each row as often as it was seen to change."""

    def __init__(self, rows: int, columns: int) -> None:
        self.transcript = ""
        self._height, self._width = rows, columns
        self._rows: dict[int, list[str]] = {}
        """By their number since the start: rows that have scrolled away keep theirs."""
        self._top = self._y = self._x = 0
        self._wraps = True
        self._continued: set[int] = set()
        """Rows that go on in the next one, because they were too long."""
        self._changed: set[int] = set()
        self._pending = ""

    def feed(self, text: str) -> None:
        self._pending += text
        while found := _TOKEN.match(self._pending):
            self._pending = self._pending[found.end() :]
            if found[2] is not None:
                self._control(found[1], found[2])
            elif len(found[0]) == 1:
                self._character(found[0])
        self._note()

    def _note(self) -> None:
        for row in sorted(self._changed):
            text = "".join(self._rows.get(row, [])).rstrip()
            if text:
                self.transcript += text + ("" if row in self._continued else "\n")
        self._changed.clear()

    def _character(self, char: str) -> None:
        match char:
            case "\r":
                self._x = 0
            case "\n":
                self._down()
            case "\x08":
                self._x = max(0, self._x - 1)
            case "\t":
                self._x = min(self._width - 1, self._x + _TAB - self._x % _TAB)
            case _ if char.isprintable():
                self._put(char)
            case _:
                pass

    def _put(self, char: str) -> None:
        if self._x >= self._width and self._wraps:
            self._continued.add(self._y)
            self._x = 0
            self._down()
        cells = self._rows.setdefault(self._y, [])
        at = min(self._x, self._width - 1)
        cells.extend(" " * (at + 1 - len(cells)))
        cells[at] = char
        if cell_len(char) == 2:
            cells[at + 1 : at + 2] = [""]
        self._x = at + max(1, cell_len(char))
        self._changed.add(self._y)

    def _down(self) -> None:
        self._y += 1
        self._top = max(self._top, self._y - self._height + 1)

    def _control(self, given: str, kind: str) -> None:
        count = max(1, int(given)) if given.isdigit() else 1
        match kind:
            case "A":
                self._y = max(self._top, self._y - count)
            case "B":
                self._y = min(self._top + self._height - 1, self._y + count)
            case "C":
                self._x = min(self._width - 1, self._x + count)
            case "D":
                self._x = max(0, self._x - count)
            case "J" | "K":
                self._erase(int(given or 0), is_below=kind == "J")
            case "h" | "l" if given == "?7":
                self._wraps = kind == "h"
            case "h" if given == "?25":  # how a program says that it has drawn what there is
                self._note()
            case _:
                pass

    def _erase(self, how: int, *, is_below: bool) -> None:
        """From the cursor to the end of its row, or the whole row; with `is_below` all rows below it, too."""
        self._note()
        self._rows[self._y] = [] if how == 2 else self._rows.get(self._y, [])[: self._x]
        self._continued.discard(self._y)
        if is_below:
            for row in [each for each in self._rows if each > self._y]:
                del self._rows[row]
                self._continued.discard(row)
