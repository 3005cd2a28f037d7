"""Shortening history for the model only: oldest tool results first. What is stored stays whole."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic_ai.messages import (
    BinaryContent,
    FileUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
)

CHARACTERS_PER_TOKEN = 4
_SHORT = 200
_OF_AN_IMAGE = 1_600 * CHARACTERS_PER_TOKEN
"""Providers count an image by its picture, whatever its bytes are: at most about so much."""
_BYTES_PER_CHARACTER = 8
"""Of a document such as a PDF, whose pages a provider reads: a rough guess, rather too much."""
_LEFT_OUT = (
    "[{count} characters of this result were left out to fit the context window; read_output(id={id!r}, what='result') "
    "reads them]"
)


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


def fitted(messages: Sequence[ModelMessage], *, most: int, aim: int) -> tuple[Compaction, bool]:
    """What the requests of this history left out so far, and whether the last of them leaves out more than before.

    A request of more than `most` characters loses its oldest results until it is down to `aim`; those that follow leave
    out the same. It is found from the messages alone, so every turn and every process finds the same, and each request
    begins as the one before: a provider has that cached.
    """
    requests = _Requests(most, aim)
    for message in messages:
        if isinstance(message, ModelResponse):
            requests.end()
        requests.add(message)
    is_more = requests.end()
    return Compaction(frozenset(requests.cut), requests.whole, requests.size), is_more


@dataclass
class _Requests:
    """The requests of a history, one after the other: each has all messages before it."""

    most: int
    aim: int
    whole: int = 0
    size: int = 0
    """Characters of the present one, without what is left out; `whole`: with it."""
    cut: set[str] = field(default_factory=set[str])
    old: deque[tuple[str, int]] = field(default_factory=deque[tuple[str, int]])
    """Results that may be left out, the oldest first: the call, and how much that saves."""
    latest: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """Those of the latest step, which always stay."""

    def add(self, message: ModelMessage) -> None:
        for part in message.parts:
            length = _part_size(part)
            self.whole, self.size = self.whole + length, self.size + length
            if isinstance(part, ToolReturnPart):
                self.latest.append((part.tool_call_id, length - _SHORT))

    def end(self) -> bool:
        """It is complete, and is shortened if it is too long. Gives whether it leaves out more than the one before."""
        known = len(self.cut)
        while self.size > self.most and self.old:
            self._shorten()
        self.old.extend(self.latest)
        self.latest.clear()
        return len(self.cut) > known

    def _shorten(self) -> None:
        while self.size > self.aim and self.old:
            call_id, saved = self.old.popleft()
            if saved > 0:
                self.cut.add(call_id)
                self.size -= saved


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
        replace(part, content=_LEFT_OUT.format(count=_part_size(part), id=part.tool_call_id))
        if isinstance(part, ToolReturnPart) and part.tool_call_id in cut
        else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def _part_size(part: Any) -> int:
    return _size_of(part.args if isinstance(part, ToolCallPart) else getattr(part, "content", ""))


def _size_of(value: Any) -> int:
    """A file counts as what a provider makes of it, and not as its bytes."""
    match value:
        case str():
            return len(value)
        case BinaryContent():
            return _size_of_file(value)
        case FileUrl():
            return _OF_AN_IMAGE
        case list() | tuple():
            return sum(_size_of(each) + 2 for each in cast(Sequence[Any], value))
        case dict():
            return sum(len(str(name)) + _size_of(each) + 6 for name, each in cast(dict[Any, Any], value).items())
        case _:
            return len(str(value))


def _size_of_file(file: BinaryContent) -> int:
    if file.media_type.startswith("image/"):
        return _OF_AN_IMAGE
    if file.media_type.startswith("text/"):
        return len(file.data)
    return max(_OF_AN_IMAGE, len(file.data) // _BYTES_PER_CHARACTER)
