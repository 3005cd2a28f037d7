"""Messages of pydantic-ai that hold what cannot be stored: cleaned in place, so that live and stored history agree."""

from dataclasses import fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any, cast, get_args

from pydantic_ai.messages import (
    BinaryContent,
    FinishReason,
    ModelMessage,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)

from outlast.values import clean

_LONGEST_ID = 500
_MOST_TOKENS = 2**53
_FINISHES = (None, *get_args(FinishReason))
_NAMES = ("model_name", "model_id", "provider_name", "provider_url", "provider_response_id")
_AS_IT_IS = (bytes, datetime, bool, type(None))


def make_plain(message: ModelMessage) -> None:
    """Every text, and everything that may be anything. What it is made of stays the same objects."""
    _make_plain(message, set())


def make_response_plain(response: ModelResponse) -> None:
    """As a model gave it, before anybody looks at it: what its type promises, and nothing that no store takes.

    Models are written by anybody, and pydantic-ai checks nothing of what they say.
    """
    for part in response.parts:
        said: Any = part
        if isinstance(part, TextPart | ThinkingPart) and not isinstance(said.content, str):
            said.content = "" if said.content is None else clean.words_of(said.content)
    given: Any = response
    if given.finish_reason not in _FINISHES:
        given.finish_reason = None
    for name in _NAMES:
        value = getattr(given, name)
        if value is not None and not isinstance(value, str):
            setattr(given, name, clean.words_of(value))
    _make_usage_plain(response)
    _make_calls_plain(response)


def _make_usage_plain(response: ModelResponse) -> None:
    usage: Any = response.usage
    for field in fields(usage):
        value = getattr(usage, field.name)
        if field.name == "cost":
            usage.cost = value if isinstance(value, Decimal) and clean.number(value) is not None else None
        elif field.name != "details":
            setattr(usage, field.name, _count(value))
    details: Any = usage.details
    found = cast(dict[Any, Any], details).items() if isinstance(details, dict) else ()
    usage.details = {clean.words_of(name): _count(value) for name, value in found}


def _count(value: Any) -> int:
    return value if type(value) is int and abs(value) < _MOST_TOKENS else int(clean.number(value) or 0)


def _make_calls_plain(response: ModelResponse) -> None:
    """Calls are run and named by what stands here, and some values can be read once."""
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
