"""The line that is being typed in a chat."""

import pytest

from outlast.cli.chat_screen import fitting
from outlast.cli.line_editor import LineEditor

LEFT, UP, DOWN, HOME = b"\x1b[D", b"\x1b[A", b"\x1b[B", b"\x1b[H"


def typed(*keys: bytes) -> tuple[list[str | None], str]:
    """The lines that were finished, and what stands in the line now."""
    editor = LineEditor()
    lines = [line for key in keys for line in editor.feed(key)]
    return lines, editor.text


@pytest.mark.parametrize(
    ("keys", "lines", "left"),
    [
        ([b"hello\r"], ["hello"], ""),
        ([b"one\rtwo\rth"], ["one", "two"], "th"),
        (["grüße\r".encode()[:3], "grüße\r".encode()[3:]], ["grüße"], ""),
        ([b"abd", LEFT, b"c\r"], ["abcd"], ""),
        ([b"bc", b"\x1b", b"[", b"H", b"a\r"], ["abc"], ""),
        ([b"abc\x7f\x7fx\r"], ["ax"], ""),
        ([b"one two\x17three"], [], "one three"),
        ([b"abc\x15d"], [], "d"),
        ([b"abc", HOME, b"\x0b"], [], ""),
        ([b"abc", HOME, b"\x04"], [], "bc"),
        ([b"\x04"], [None], ""),
        ([b"one\rtwo\r", UP, UP, b"!\r"], ["one", "two", "one!"], ""),
        ([b"one\rdraft", UP, DOWN, b"s"], ["one"], "drafts"),
        ([b"\x1b[200~two\rlines\x1b[31m\x1b[201~!\r"], ["two\nlines!"], ""),
        ([b"a\x1b[15~\x07b\r"], ["ab"], ""),
    ],
)
def test_keys_make_lines(keys: list[bytes], lines: list[str | None], left: str) -> None:
    """K1: editing, history, pasting, and characters that arrive in pieces."""
    assert typed(*keys) == (lines, left)


@pytest.mark.parametrize(
    ("words", "width", "cut"),
    [
        ("short", 10, 5),
        ("one two three", 8, 8),
        ("one two three", 7, 8),
        ("unbreakable", 4, 4),
        ("木木木", 4, 2),
        ("木", 1, 1),
    ],
)
def test_a_row_breaks_between_words(words: str, width: int, cut: int) -> None:
    """K1: and where there is no other place, inside one; wide characters take two cells."""
    assert fitting(words, width) == cut
