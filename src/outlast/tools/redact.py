"""Keeping secrets out of logs and events: by the name of a field, and by registered value."""

import re
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, cast

MASK = "[redacted]"
LINE = 200
CHAIN_BYTES = 64 * 1024

_NAMES = frozenset(
    {
        *("api_key", "apikey", "api_secret", "password", "passwd", "secret", "credential", "credentials", "token"),
        *("access_token", "refresh_token", "private_key", "auth", "authorization", "cookie"),
    }
)
_IN_TEXT = re.compile(
    r"(?i)(['\"]?\b(?:" + "|".join(sorted(_NAMES, key=len, reverse=True)) + r")['\"]?\s*[=:]\s*)"
    r"(?:bearer\s+)?('[^']*'|\"[^\"]*\"|[^\s,;&)}\]]+)"
)


def redact(value: Any, *, cut: int | None = LINE) -> Any:
    """A copy fit for a log line: named secrets masked at any depth, long text cut."""
    if isinstance(value, Mapping):
        fields = cast(Mapping[Any, Any], value)
        return {name: MASK if _is_secret(name) else redact(each, cut=cut) for name, each in fields.items()}
    if isinstance(value, str):
        return _cut(_IN_TEXT.sub(rf"\1{MASK}", value), cut)
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    if isinstance(value, Sequence):
        return [redact(each, cut=cut) for each in cast(Sequence[Any], value)]
    if value is None or isinstance(value, bool | int | float):
        return value
    return _cut(_IN_TEXT.sub(rf"\1{MASK}", repr(value)), cut)


def error_chain(exc: BaseException) -> str:
    """The whole chain of causes, redacted, at most 64 KiB."""
    text = "".join(traceback.format_exception(exc))
    return redact(text, cut=CHAIN_BYTES)


def _is_secret(name: Any) -> bool:
    return isinstance(name, str) and name.lower().replace("-", "_") in _NAMES


def _cut(text: str, most: int | None) -> str:
    return text if most is None or len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


class Secrets:
    """Values that must not be seen outside the tools that use them. One registry per runtime."""

    _SHORTEST = 6

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, value: str) -> None:
        """Very short values are not taken: masking them would blank out ordinary text."""
        if len(value) >= self._SHORTEST and value not in self._values:
            self._values.add(value)
            longest_first = sorted(self._values, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def mask(self, value: Any) -> Any:
        """A copy with every registered value starred out at its own length, so that offsets in text stay true."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self._pattern.sub(lambda found: "*" * len(found[0]), value)
        if isinstance(value, dict):
            fields = cast(dict[str, Any], value)
            return {name: self.mask(each) for name, each in fields.items()}
        if isinstance(value, list):
            return [self.mask(each) for each in cast(list[Any], value)]
        return value
