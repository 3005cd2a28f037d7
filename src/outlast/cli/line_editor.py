"""A line that is being typed: bytes from a terminal in, finished lines out. Draws nothing itself."""

import codecs
import re
from collections.abc import Iterator
from typing import TypeAlias

END = "\x04"
KEYS = {
    "\x1b[D": "left",
    "\x1b[C": "right",
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1bOH": "home",
    "\x1bOF": "end",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
    "\x1b[3~": "delete",
    "\x01": "home",
    "\x05": "end",
    "\x02": "left",
    "\x06": "right",
    "\x10": "up",
    "\x0e": "down",
    "\x0b": "kill_right",
    "\x15": "kill_left",
    "\x17": "kill_word",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\r": "enter",
    "\n": "enter",
    END: "end_of_input",
}
PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O[@-~]|[^\[O])")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*|O)?$")
LineOrEnd: TypeAlias = str | None
"""A finished line, or None: the person wants to leave."""


class LineEditor:
    """Text, cursor and the lines typed before. A pasted text is one line until Enter is pressed, breaks and all."""

    def __init__(self) -> None:
        self.text = ""
        self.cursor = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._pending = ""
        self._is_pasting = False
        self._history: list[str] = []
        self._place = 0
        self._draft = ""

    def feed(self, data: bytes) -> Iterator[LineOrEnd]:
        """Take what was typed. Keys that mean nothing here are passed over."""
        self._pending += self._decoder.decode(data)
        while self._pending:
            key = self._next_key()
            if key is None:
                return
            if key == PASTE_BEGINS:
                self._is_pasting = True
            elif key == PASTE_ENDS:
                self._is_pasting = False
            elif self._is_pasting and key in "\r\n":
                self._insert("\n")
            elif key in KEYS and not self._is_pasting:
                yield from self._press(KEYS[key])
            elif len(key) == 1 and (key.isprintable() or key == "\t"):
                self._insert(key)

    def clear(self) -> None:
        self.text, self.cursor, self._place = "", 0, len(self._history)

    def _next_key(self) -> str | None:
        """The first key of what is pending; None while an escape sequence is not whole."""
        found = _SEQUENCE.match(self._pending)
        if found is None and _UNFINISHED.match(self._pending):
            return None
        key = found[0] if found is not None else self._pending[0]
        self._pending = self._pending[len(key) :]
        return key

    def _press(self, key: str) -> Iterator[LineOrEnd]:
        match key:
            case "enter":
                line = self.text
                if line.strip() and self._history[-1:] != [line]:
                    self._history.append(line)
                self.clear()
                yield line
            case "end_of_input" if not self.text:
                yield None
            case "end_of_input" | "delete":
                self.text = self.text[: self.cursor] + self.text[self.cursor + 1 :]
            case "backspace":
                self._remove_from(max(0, self.cursor - 1))
            case "kill_left":
                self._remove_from(0)
            case "kill_word":
                before = self.text[: self.cursor].rstrip()
                self._remove_from(before.rfind(" ") + 1)
            case "kill_right":
                self.text = self.text[: self.cursor]
            case "up" | "down":
                self._recall(-1 if key == "up" else 1)
            case _:
                self._move(key)

    def _move(self, key: str) -> None:
        places = {"left": self.cursor - 1, "right": self.cursor + 1, "home": 0, "end": len(self.text)}
        self.cursor = min(len(self.text), max(0, places[key]))

    def _insert(self, text: str) -> None:
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)

    def _remove_from(self, start: int) -> None:
        self.text = self.text[:start] + self.text[self.cursor :]
        self.cursor = start

    def _recall(self, step: int) -> None:
        """Move through the lines typed before; the line that was being typed is kept at the end."""
        place = self._place + step
        if not 0 <= place <= len(self._history):
            return
        if self._place == len(self._history):
            self._draft = self.text
        self._place = place
        self.text = self._draft if place == len(self._history) else self._history[place]
        self.cursor = len(self.text)
