"""Text of others as a terminal may show it: nothing in it moves the cursor, sets the clipboard or hides words."""

import re

_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n\r"}
_HIDDEN = [*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xFFF9, 0xFFFC), 0x2028, 0x2029]
"""Control characters beyond ASCII, line separators, and what turns the order of characters around."""
_SHOWN_AS = {
    **_PICTURES,
    0x7F: "\N{SYMBOL FOR DELETE}",
    ord("\r"): "\n",
    **dict.fromkeys(_HIDDEN, "\N{REPLACEMENT CHARACTER}"),
}
_UNFIT = re.compile("[" + "".join(re.escape(chr(each)) for each in _SHOWN_AS) + "]")
_COLOUR = re.compile(r"\x1b\[[0-9;:]{0,40}m")


def plain(text: str) -> str:
    """Its control characters as pictures of themselves, so that they are seen and do nothing; colours are left out.

    Lines and tabs stay. Text that comes in pieces may be given piece by piece.
    """
    if _UNFIT.search(text) is None:
        return text
    return _COLOUR.sub("", text).replace("\r\n", "\n").translate(_SHOWN_AS)


def plain_line(text: str) -> str:
    """The same in one line."""
    return " ".join(plain(text).split())


def plain_json(document: str) -> str:
    """The same document: what a terminal would obey stands in its strings as JSON's own escapes."""
    return _UNFIT.sub(_escaped, document) if _UNFIT.search(document) else document


def _escaped(found: re.Match[str]) -> str:
    # Between its strings a document has no other control characters than these.
    return found[0] if found[0] in "\n\r" else f"\\u{ord(found[0]):04x}"
