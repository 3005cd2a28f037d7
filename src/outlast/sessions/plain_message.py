"""Messages of pydantic-ai that hold what cannot be stored: cleaned in place, so that live and stored history agree."""

from dataclasses import fields, is_dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, cast

from pydantic_ai.messages import BinaryContent, ModelMessage, ModelResponse, ToolCallPart

from outlast.tools import clean

_LONGEST_ID = 500
_AS_IT_IS = (bytes, datetime, bool, type(None))


def make_plain(message: ModelMessage) -> None:
    """Every text, and everything that may be anything. What it is made of stays the same objects."""
    _make_plain(message, set())


def make_calls_plain(response: ModelResponse) -> None:
    """Before anybody looks at them: calls are run and named by what stands here, and some values can be read once."""
    calls: list[Any] = [part for part in response.parts if isinstance(part, ToolCallPart)]
    taken = {call.tool_call_id for call in calls}
    for call in calls:
        call.tool_name = clean.text(call.tool_name)
        if (plain := _id(call.tool_call_id)) != call.tool_call_id:
            call.tool_call_id = clean.free(plain, taken)
            taken.add(call.tool_call_id)
        if call.args is not None and not isinstance(call.args, str):
            call.args = clean.value(call.args)


def _id(given: str) -> str:
    """It stands in an index, which does not take everything."""
    plain = clean.text(given)
    return plain if len(plain) <= _LONGEST_ID else f"{plain[:40]}…{sha256(plain.encode()).hexdigest()}"


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
