"""What sessions are called that nobody gave a title: how their first messages begin (D10)."""

import pytest

from outlast.transitions.sessions.preview import LONGEST, of_text, title_of

FAMILY = "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL}"
NORWAY = "\N{REGIONAL INDICATOR SYMBOL LETTER N}\N{REGIONAL INDICATOR SYMBOL LETTER O}"
LONG = "Supercalifragilistic" * 10
RIVER = "\u6211\u60f3\u77e5\u9053\u6cb3\u6d41\u6709\u591a\u6df1"
"""Chinese: no blanks between words."""


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("\n\n \t  Measure\r\n  the\n\nriver", "Measure the river"),
        ("a" + " " * 300 + "b", "a b"),
        ("Look\n" + "\n" * 500 + "here", "Look here"),
        ("word " * 100, "word word word word word word word word word word word…"),
        (LONG, LONG[:59] + "…"),
        ("See " + LONG, ("See " + LONG)[:59] + "…"),
        ("\u4eca\u5929 " + RIVER * 12, ("\u4eca\u5929 " + RIVER * 12)[:59] + "…"),
        ("# Plan\n\n- the **river**\n- the `lake`", "Plan - the river - the lake"),
        ("> - quoted", "quoted"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("2 * 3 ** 4 and f(**options) or x ** y", "2 * 3 ** 4 and f(**options) or x ** y"),
        ("#hashtag", "#hashtag"),
        ("-----", "-----"),
        ("." * 100, "." * 59 + "…"),
        ("\N{RIGHT-TO-LEFT OVERRIDE}evil\N{ZERO WIDTH SPACE}\x1b[31m", "evil[31m"),
        (FAMILY * 20, FAMILY * 11 + "…"),
        (NORWAY * 60, NORWAY * 29 + "…"),
        ("e\N{COMBINING ACUTE ACCENT}" * 60, "e\N{COMBINING ACUTE ACCENT}" * 29 + "…"),
        ("\N{ZERO WIDTH SPACE}\n\N{HANGUL FILLER}", None),
        ("\N{WATER WAVE}", "\N{WATER WAVE}"),
    ],
)
def test_the_first_words_stand_for_a_title(said: str, title: str | None) -> None:
    """Whole words in one line, no marks of Markdown, nothing that cannot be seen; what is left out is marked."""
    preview = of_text(said)
    assert title_of(preview) == title
    assert preview is None or len(preview) <= LONGEST


def test_what_is_left_out_is_marked_in_the_preview_too() -> None:
    assert of_text("a" * 500) == "a" * (LONGEST - 1) + "…"
    assert of_text("a " * 500) == "a " * (LONGEST // 2 - 1) + "a…"
    assert of_text("Look" + "\n" * 500) == "Look"
