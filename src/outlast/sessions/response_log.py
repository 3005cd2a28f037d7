"""A streaming model response as events: each part starts, grows by deltas with offsets, and ends."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from pydantic_ai.messages import (
    AgentStreamEvent,
    ModelResponsePart,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_core import to_json

from outlast.events.types import EventType
from outlast.sessions.turn_log import TurnLog


@dataclass(slots=True)
class ResponseLog:
    """`name` is unique within the turn over all attempts; a part is `name.index`."""

    log: TurnLog
    name: str
    lengths: dict[int, int] = field(default_factory=dict[int, int])
    open_parts: dict[int, str] = field(default_factory=dict[int, str])
    words: list[int] = field(default_factory=list[int])
    """All parts but calls, in order."""

    def take(self, event: AgentStreamEvent) -> None:
        if isinstance(event, PartStartEvent):
            self._start(event.index, event.part)
        elif isinstance(event, PartDeltaEvent):
            self._grow(event.index, _delta_text(event.delta))
        elif isinstance(event, PartEndEvent):
            self.end(event.index)

    def end(self, index: int) -> None:
        part = self.open_parts.pop(index, None)
        if part is not None:
            self.log.add(EventType.PART_ENDED, {"part": part, "length": self.lengths[index]})

    def end_all(self) -> None:
        for index in list(self.open_parts):
            self.end(index)

    def complete(self, arrived: Sequence[ModelResponsePart]) -> None:
        """Tell the rest and end it: a run that is cancelled may have been given more than it could pass on."""
        words = [part for part in arrived if not isinstance(part, ToolCallPart)]
        for index, part in zip_longest(self.words, words):
            if part is None:
                break
            if index is None:
                self._start(max(self.lengths, default=-1) + 1, part)
            else:
                self._grow(index, _start_text(part)[self.lengths[index] :])
        self.end_all()

    @property
    def parts(self) -> list[str]:
        return [f"{self.name}.{index}" for index in self.lengths]

    def _start(self, index: int, part: ModelResponsePart) -> None:
        self.open_parts[index] = f"{self.name}.{index}"
        self.lengths[index] = 0
        data: dict[str, Any] = {"part": self.open_parts[index], "kind": _kind(part)}
        if isinstance(part, ToolCallPart):
            data |= {"call_id": part.tool_call_id, "tool": part.tool_name}
        elif index not in self.words:
            self.words.append(index)
        self.log.add(EventType.PART_STARTED, data)
        self._grow(index, _start_text(part))

    def _grow(self, index: int, text: str) -> None:
        if text and index in self.open_parts:
            self.log.add_delta(self.open_parts[index], self.lengths[index], text)
            self.lengths[index] += len(text)


def _kind(part: ModelResponsePart) -> str:
    if isinstance(part, TextPart):
        return "text"
    if isinstance(part, ThinkingPart):
        return "reasoning"
    return "call" if isinstance(part, ToolCallPart) else part.part_kind


def _start_text(part: ModelResponsePart) -> str:
    if isinstance(part, TextPart | ThinkingPart):
        return part.content
    return _args_text(part.args) if isinstance(part, ToolCallPart) else ""


def _delta_text(delta: object) -> str:
    if isinstance(delta, TextPartDelta):
        return delta.content_delta
    if isinstance(delta, ThinkingPartDelta):
        return delta.content_delta or ""
    return _args_text(delta.args_delta) if isinstance(delta, ToolCallPartDelta) else ""


def _args_text(args: Any) -> str:
    if args is None or isinstance(args, str):
        return args or ""
    return to_json(args).decode()
