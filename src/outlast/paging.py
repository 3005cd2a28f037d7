"""A page of a list, and the cursor that says where the next one begins. Cursors are opaque to whoever holds them."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from pydantic_core import from_json, to_json

from outlast.errors import InvalidInput

T = TypeVar("T")
MOST = 500


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items of a list. `next` is the cursor with which to ask for those after them; None when that was all."""

    items: Sequence[T]
    next: str | None = None


def clamp(limit: int) -> int:
    """How many items a page really has: at least one, at most 500."""
    return max(1, min(limit, MOST))


def cursor(*values: str | int) -> str:
    return base64.urlsafe_b64encode(to_json(values)).decode().rstrip("=")


def position(given: str, *types: type[str] | type[int]) -> list[Any]:
    """The values of a cursor that this list gave out; anything else is refused."""
    try:
        found: Any = from_json(base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error) as exc:
        raise _not_ours() from exc
    values = cast(list[Any], found) if isinstance(found, list) else []
    if [type(each) for each in values] != list(types) or any(
        type(each) is int and abs(each) >= 2**63 for each in values
    ):
        raise _not_ours()
    return values


def _not_ours() -> InvalidInput:
    return InvalidInput("This is not a cursor of this list: use the `next` of its last page, or none.")
