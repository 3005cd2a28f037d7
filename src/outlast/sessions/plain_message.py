"""Messages of pydantic-ai that hold what cannot be stored: cleaned in place, so that live and stored history agree."""

from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, cast

from pydantic_ai.messages import BinaryContent, ModelMessage, ModelResponse, ToolCallPart

from outlast.tools import clean

_AS_IT_IS = (bytes, datetime, bool, type(None))


def make_plain(message: ModelMessage) -> None:
    """Every text, and everything that may be anything. What it is made of stays the same objects."""
    _make_plain(message, set())


def make_arguments_plain(response: ModelResponse) -> None:
    """Before anybody looks at them: to write some values is to use them up."""
    for part in response.parts:
        if isinstance(part, ToolCallPart) and part.args is not None and not isinstance(part.args, str):
            part.args = clean.value(part.args)


def _make_plain(thing: Any, seen: set[int]) -> None:
    if id(thing) in seen:
        return
    seen.add(id(thing))
    for field in fields(thing):
        value = getattr(thing, field.name)
        plain = _plain(value, seen)
        if plain is not value:
            object.__setattr__(thing, field.name, plain)


def _plain(value: Any, seen: set[int]) -> Any:
    if isinstance(value, str):
        return clean.text(value)
    if isinstance(value, _AS_IT_IS):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        _make_plain(value, seen)
        return value
    if isinstance(value, list) and any(is_dataclass(each) for each in cast(list[Any], value)):
        return [_plain(each, seen) for each in cast(list[Any], value)]
    return clean.value(value, kept=(BinaryContent,))
