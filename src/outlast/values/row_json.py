"""JSON in rows: what is written can be read back, and what cannot be read is said to be so in its place."""

from typing import Any, cast

import structlog
from pydantic_core import from_json, to_json

from outlast.values import clean
from outlast.values.shape import Shape, fits

log = structlog.get_logger("outlast.store")

ROOM = 10
"""Levels that are left for what stands around a value: readers take 200 in all."""
_SURELY_READ = 180
"""So few bytes hold neither too many levels nor too many digits."""
_LEVELS = 150
_DIGITS = 4_000
UNREADABLE = "unreadable"


def write(value: Any) -> str:
    return written(value)[1]


def written(value: Any) -> tuple[Any, str]:
    """The value as it will be read back, and its JSON. An ordinary value is not copied."""
    try:
        encoded = to_json(value, inf_nan_mode="null")
        if is_readable(encoded):
            return value, encoded.decode()
    except Exception as exc:  # whatever it was: it is cleaned, and that is written
        log.debug("a value is cleaned before it is written", error=type(exc).__name__)
    value = clean.value(value)
    return value, to_json(value).decode()


def is_readable(encoded: bytes) -> bool:
    """Whether all readers take it: Python, PostgreSQL and browsers. Almost always seen without reading it."""
    if len(encoded) <= _SURELY_READ:
        return True
    is_flat = encoded.count(b"{") + encoded.count(b"[") <= _LEVELS
    # A number that is too long has a digit at every so many bytes.
    has_long_number = any(48 <= each <= 57 for each in encoded[_DIGITS - 1 :: _DIGITS])
    return (is_flat and not has_long_number) or _is_strict(encoded)


def _is_strict(encoded: bytes) -> bool:
    try:
        from_json(b"[" * ROOM + encoded + b"]" * ROOM, allow_inf_nan=False)
    except ValueError:
        return False
    return True


def read(text: str | bytes) -> Any:
    """Whatever stands there; in place of what cannot be read, an object that says so."""
    try:
        return from_json(text)
    except ValueError as exc:
        log.error("a stored value cannot be read", error=str(exc), bytes=len(text))
        return unreadable(len(text))


def read_object(text: str | bytes, shape: Shape | None = None) -> dict[str, Any]:
    """An object of a shape; what is none says that it cannot be read."""
    return _of_shape(read(text), shape or {}, len(text))


def read_list(text: str | bytes, shape: Shape | None = None) -> list[dict[str, Any]]:
    """Objects of a shape; in place of each that is none, and of what is no list, one that says so."""
    found = read(text)
    items = cast(list[Any], found) if isinstance(found, list) else [found]
    return [_of_shape(each, shape or {}, len(text)) for each in items]


def _of_shape(found: Any, shape: Shape, size: int) -> dict[str, Any]:
    if is_unreadable(found):
        return found
    if fits(found, shape):
        return found
    log.error("a stored value has not the fields that it should have", fields=sorted(shape), bytes=size)
    return unreadable(size)


def unreadable(size: int) -> dict[str, Any]:
    return {"kind": UNREADABLE, "message": f"This was stored in a form that cannot be read ({size} bytes)."}


def is_unreadable(value: Any) -> bool:
    return isinstance(value, dict) and cast(dict[str, Any], value).get("kind") == UNREADABLE
