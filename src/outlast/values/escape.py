"""The runtime's own tags in text from elsewhere: made harmless, so that nobody else can speak in its voice."""

import re
from unicodedata import normalize

OWN_TAGS = ("background_result", "attached_context", "attached_files", "runtime_notice")

_LESS = "<\uff1c\ufe64\u2039\u02c2\u276e\u27e8\u3008\u2329\u1438"
"""What reads as a `<`."""
_SLASH = "/\uff0f\u2215\u2044"
_LOOKS = "\u0430\u0441\u0501\u0435\u04bb\u0456\u043a\u0578\u043e\u0455\u0445\u203f"
_LOOKS_LIKE = dict(zip("acdehiknosx_", _LOOKS, strict=True))
_NOT_SEEN = (
    r"\s\x00-\x1f\x7f-\xa0\xad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u205f-\u206f\u20d0-\u20f0\u2800\u3164\ufe00-\ufe0f\ufe20-\ufe2f\ufeff\uffa0\ufff0-\ufffd"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Blanks, characters that only format, marks upon others, and what stands for one that could not be stored."""


def _letter(letter: str) -> str:
    """With its full-width form and what looks like it."""
    return f"[{letter}{chr(ord(letter) + 0xFEE0)}{_LOOKS_LIKE.get(letter, '')}]"


_GAP = f"[{_NOT_SEEN}]*+"
_NAMES = "|".join(_GAP.join(map(_letter, tag)) for tag in OWN_TAGS)
# Never two runs of gaps side by side: the ways to share them out would be tried, one after the other.
_OTHER = "(?!/?[c-qs-z0-9!?=-])"  # no tag of ours begins so: most markup is passed over at once
_OWN_TAG = re.compile(rf"[{_LESS}]{_OTHER}(?={_GAP}(?:[{_SLASH}]{_GAP})?(?:{_NAMES})(?![0-9a-z_]))", re.I)
_UNSEEN = re.compile(f"[{_NOT_SEEN}]++")
_SEEN_AS = str.maketrans({**{looks: letter for letter, looks in _LOOKS_LIKE.items()}, **dict.fromkeys(_SLASH, "/")})


def escape(text: str) -> str:
    """All other markup stays as it was written."""
    if "<" not in text and text.isascii():
        return text
    return _OWN_TAG.sub("&lt;", text)


def escape_whole(text: str) -> str:
    """For a text that others may follow without a break: it does not end with the beginning of such a tag either."""
    text = escape(text)
    at = max(map(text.rfind, _LESS)) if "<" in text or not text.isascii() else -1
    if at < 0:
        return text
    begun = normalize("NFKC", _UNSEEN.sub("", text[at + 1 :])).lower().translate(_SEEN_AS).removeprefix("/")
    return f"{text[:at]}&lt;{text[at + 1 :]}" if any(tag.startswith(begun) for tag in OWN_TAGS) else text
