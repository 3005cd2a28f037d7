"""What every reader takes for granted in an event's data: a check for each type of event, made from its TypedDict.

A field that may be left out may be null too. What may be anything is not checked, nor are fields that nobody declared.
"""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, NotRequired, Union, get_args, get_origin, get_type_hints

from typing_extensions import is_typeddict

from outlast.events.data.by_type import DATA
from outlast.events.types import EventType
from outlast.values.shape import Check, Shape, fits, list_of, maybe, number, object_of, pair, text, whole

_SIMPLE: Mapping[Any, Check] = {
    str: text,
    int: whole,
    float: number,
    bool: lambda value: isinstance(value, bool),
    Any: lambda _: True,
    tuple[int, int]: pair,
}


def shape_of(data: type[Any]) -> Shape:
    """What must hold for an object that has the type of this TypedDict."""
    hints = get_type_hints(data, include_extras=True)
    optional: frozenset[str] = getattr(data, "__optional_keys__", frozenset[str]())
    return {
        name: maybe(_check(hint)) if name in optional else _check(hint)
        for name, hint in hints.items()
        if _bare(hint) is not Any
    }


def _bare(hint: Any) -> Any:
    while get_origin(hint) in (Annotated, NotRequired):
        hint = get_args(hint)[0]
    return hint


def _check(hint: Any) -> Check:
    hint = _bare(hint)
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if is_typeddict(hint):
        return object_of(shape_of(hint))
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (one,) = (each for each in parts if each is not NoneType)
        return maybe(_check(one))
    if origin is list:
        return list_of(_check(parts[0]))
    if origin is dict:
        return object_of()
    raise TypeError(f"no check is known for {hint}")


_SHOWN_ONLY = frozenset(each for each in EventType if each.startswith(("session.", "stream."))) | {
    EventType.TURN_QUEUED,
    EventType.HISTORY_COMPACTED,
}
"""No reader counts on what these hold: they are passed on as they were stored."""
_SHAPES: Mapping[str, Shape] = {type_.value: shape_of(data) for type_, data in DATA.items() if type_ not in _SHOWN_ONLY}
_CALL: Shape = {"call_id": text, "tool": text}


def is_as_told(type_: str, data: Mapping[str, Any]) -> bool:
    """Whether it holds what its type promises. Of a type that nobody knows nothing is promised."""
    shape = _SHAPES.get(type_)
    if shape is None or not fits(data, shape):
        return shape is None
    if type_ == EventType.PART_STARTED and data["kind"] == "call":
        return fits(data, _CALL)
    return data.get("first") is None or type_ != EventType.PART_DELTA or data.get("marks") is not None
