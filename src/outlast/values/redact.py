"""Keeping secrets out of logs and stored errors by the names of fields."""

import re
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, cast

from outlast.values import clean

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

AMOUNT = "[amount]"
_NUMBER = r"[+-]?\d[\d.,_]*(?:e[+-]?\d+)?"
_AMOUNT = re.compile(
    rf"(?i)(?<=[$€£¥])\s?{_NUMBER}"
    rf"|(?<![\d.,_]){_NUMBER}\s?(?:[$€£¥]|(?:usd|eur|gbp|(?:micro)?dollars?|euros?|cents?|credits?)\b)"
    rf"|\b(?:usd|eur|gbp)\s?{_NUMBER}"
    rf"|(?<=cost)[`'\"]?\s?[=:]\s?(?:decimal\(['\"]?)?{_NUMBER}(?:['\"]?\))?"
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
    return _cut(_IN_TEXT.sub(rf"\1{MASK}", clean.words_of(value, show=repr, most=None)), cut)


def without_money(text: str) -> str:
    """What an error says, for those who may not know what anything costs: no amounts."""
    return _AMOUNT.sub(AMOUNT, text)


def error_chain(exc: BaseException) -> str:
    """The whole chain of causes, redacted, at most 64 KiB."""
    return redact(clean.words_of(exc, show=_whole, most=None), cut=CHAIN_BYTES)


def last_line(exc: BaseException) -> str:
    """What an exception says of itself, for whoever runs the program: the model and tenants get a reference."""
    said = clean.words_of(exc, show=_only, most=None).strip()
    return redact(said.splitlines()[-1] if said else type(exc).__name__, cut=CHAIN_BYTES)


def _whole(exc: BaseException) -> str:
    return "".join(traceback.format_exception(exc))


def _only(exc: BaseException) -> str:
    return "".join(traceback.format_exception_only(exc))


def _is_secret(name: Any) -> bool:
    return isinstance(name, str) and name.lower().replace("-", "_") in _NAMES


def _cut(text: str, most: int | None) -> str:
    return text if most is None or len(text) <= most else f"{text[:most]}… ({len(text)} characters)"
