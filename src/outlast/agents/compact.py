"""Shortening history for the model only: oldest tool results first. What is stored stays whole."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

CHARACTERS_PER_TOKEN = 4
_SHORT = 200
_LEFT_OUT = "[{count} characters of this result were left out to fit the context window]"


@dataclass(frozen=True, slots=True)
class Compaction:
    """What was cut from one request."""

    cut: frozenset[str]
    characters_before: int
    characters_after: int


def size(messages: Sequence[ModelMessage]) -> int:
    """About how many characters the model is sent."""
    return sum(_part_size(part) for message in messages for part in message.parts)


def choose(messages: Sequence[ModelMessage], *, most: int) -> Compaction:
    """The oldest results to leave out until the rest fits; those of the latest step always stay."""
    before = after = size(messages)
    cut: set[str] = set()
    for part in _old_results(messages):
        if after <= most:
            break
        saved = _part_size(part) - _SHORT
        if saved > 0:
            cut.add(part.tool_call_id)
            after -= saved
    return Compaction(frozenset(cut), before, after)


def apply(messages: Sequence[ModelMessage], cut: frozenset[str]) -> list[ModelMessage]:
    """The same messages with the chosen results replaced; calls and results stay paired."""
    return [_without(message, cut) if isinstance(message, ModelRequest) else message for message in messages]


def _old_results(messages: Sequence[ModelMessage]) -> list[ToolReturnPart]:
    last = max((at for at, each in enumerate(messages) if isinstance(each, ModelResponse)), default=0)
    return [part for message in messages[:last] for part in message.parts if isinstance(part, ToolReturnPart)]


def _without(message: ModelRequest, cut: frozenset[str]) -> ModelRequest:
    if not any(isinstance(part, ToolReturnPart) and part.tool_call_id in cut for part in message.parts):
        return message
    parts = [
        replace(part, content=_LEFT_OUT.format(count=_part_size(part)))
        if isinstance(part, ToolReturnPart) and part.tool_call_id in cut
        else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def _part_size(part: Any) -> int:
    value = part.args if isinstance(part, ToolCallPart) else getattr(part, "content", "")
    return len(value) if isinstance(value, str) else len(str(value))
