"""Shapes of stored values: JSON may be whole, and still not hold what its readers take for granted.

A shape names fields and what each must be. What has not got it is told as unreadable where its row is read, so that
nobody after that has to ask again.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, cast

Check = Callable[[Any], bool]
Shape = Mapping[str, Check]


def fits(found: Any, shape: Shape) -> bool:
    """An object whose fields are as the shape has them; a field that is not there is None."""
    if not isinstance(found, dict):
        return False
    fields = cast(dict[str, Any], found)
    return all(check(fields.get(name)) for name, check in shape.items())


def text(value: Any) -> bool:
    return isinstance(value, str)


def whole(value: Any) -> bool:
    """An integer that columns and readers take."""
    return type(value) is int and abs(value) < 2**63


def number(value: Any) -> bool:
    return type(value) is float or whole(value)


def instant(value: Any) -> bool:
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True


def one_of(*values: str) -> Check:
    return lambda value: value in values


def object_of(shape: Shape | None = None) -> Check:
    return lambda value: fits(value, shape or {})


def list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, cast(list[Any], value)))


def pair(value: Any) -> bool:
    """Two integers."""
    return list_of(whole)(value) and len(value) == 2


def maybe(check: Check) -> Check:
    """That, or nothing."""
    return lambda value: value is None or check(value)
