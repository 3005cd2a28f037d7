"""The first words of a session's first message: they tell sessions apart that have no title."""

import re
import unicodedata

LONGEST = 80
_TITLE = 60
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u115f\u1160\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u2800\u3164\ufeff\uffa0\ufff9-\ufffb]"
)
"""What shows nothing, and what turns the words around that stand beside a title."""
_FIRST_MARKS = re.compile(r"(?:(?:`{3,}\w*|#{1,6}|>|[-*+])\s+)+")
_AROUND = re.compile(r"(\*\*|`+)(?=[^\s`*])(.+?)(?<=[^\s`*])\1")
_LATER_MARKS = re.compile(r"(?<!\s)\s++`{3,}$")
_JOINER = "\u200d"


def of_text(text: str) -> str | None:
    """In one line, what is left out is marked. None for a text of which nothing can be seen."""
    line = _line(text)
    if line is None or len(line) <= LONGEST:
        return line
    return line[: _end(line, LONGEST - 1)] + "…"


def title_of(preview: str | None) -> str | None:
    """What a session is called that nobody gave a title: how it begins, without marks of Markdown, in whole words."""
    line = None if preview is None else _line(preview)
    if line is None:
        return None
    line = _plain(line)
    if len(line) <= _TITLE:
        return line
    words = line[: _TITLE - 1].rpartition(" ")[0]
    # Languages without blanks, addresses and other long words are cut within.
    kept = words if len(words) >= _TITLE // 2 else line[: _end(line, _TITLE - 1)]
    return (kept.rstrip(" ,;:.-–—") or kept) + "…"


def _line(text: str) -> str | None:
    line = " ".join(_UNSEEN.sub("", text).split(maxsplit=LONGEST))
    # The rest of a text that has more words may still have any blanks: it is cut off in any case.
    return line if any(unicodedata.category(each)[0] in "LNPS" for each in line[:LONGEST]) else None


def _plain(line: str) -> str:
    begins = _FIRST_MARKS.match(line)
    plain = _LATER_MARKS.sub("", _AROUND.sub(r"\2", line[begins.end() :] if begins else line))
    return plain if any(each.isalnum() for each in plain) else line


def _end(line: str, most: int) -> int:
    """Where to cut so that no character is cut that is written as several."""
    end = most
    while end > most // 2 and _belongs_to_the_one_before(line, end):
        end -= 1
    return end if end > most // 2 else most


def _belongs_to_the_one_before(line: str, at: int) -> bool:
    this, before = line[at], line[at - 1]
    if unicodedata.category(this)[0] == "M" or _JOINER in (this, before) or "\U0001f3fb" <= this <= "\U0001f3ff":
        return True
    if not (_is_of_flag(this) and _is_of_flag(before)):
        return False
    first = at
    while first and _is_of_flag(line[first - 1]):
        first -= 1
    return (at - first) % 2 == 1


def _is_of_flag(each: str) -> bool:
    return "\U0001f1e6" <= each <= "\U0001f1ff"
