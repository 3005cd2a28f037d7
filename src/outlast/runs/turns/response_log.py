"""A streaming model response as events: each part starts, grows by deltas with offsets, and ends."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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

from outlast.events.types import EventType
from outlast.runs.turns.turn_log import TurnLog
from outlast.values import clean, row_json
from outlast.values.secrets import MaskedStream


@dataclass(slots=True)
class ResponseLog:
    """`name` is unique within the turn over all attempts; a part is `name.index`."""

    log: TurnLog
    name: str
    lengths: dict[int, int] = field(default_factory=dict[int, int])
    open_parts: dict[int, str] = field(default_factory=dict[int, str])
    texts: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    """What arrived; of that, `lengths` were told."""
    masked: dict[int, MaskedStream] = field(default_factory=dict[int, MaskedStream])
    calls: set[int] = field(default_factory=set[int])
    """Parts whose text is the arguments of a call: nobody reads it word by word."""
    halves: dict[int, str] = field(default_factory=dict[int, str])
    """The first half of a character whose second half comes with the next delta."""

    def take(self, event: AgentStreamEvent) -> None:
        if isinstance(event, PartStartEvent):
            self._start(event.index, event.part)
        elif isinstance(event, PartDeltaEvent):
            self._grow(event.index, _delta_text(event.delta))
        elif isinstance(event, PartEndEvent):
            self.end(event.index)

    def end(self, index: int) -> None:
        if self.halves.pop(index, None) is not None:
            self._grow(index, "\N{REPLACEMENT CHARACTER}")
        if index in self.open_parts:
            self._tell(index, self.masked[index].close())
            part = self.open_parts.pop(index)
            self.log.add(EventType.PART_ENDED, {"part": part, "length": self.lengths[index]})

    def end_all(self) -> None:
        for index in list(self.open_parts):
            self.end(index)

    def told_of(self, arrived: Sequence[ModelResponsePart]) -> list[ModelResponsePart]:
        """What arrived, without the words that nobody was told: a run that is cancelled passes on no more of them.

        What the agent itself keeps from its readers, or tells in other words, stays as it is.
        """
        last = max(self.texts, default=-1)
        return [self._as_told(index, part) for index, part in enumerate(arrived) if index <= last]

    def _as_told(self, index: int, part: ModelResponsePart) -> ModelResponsePart:
        if index not in self.texts or not isinstance(part, TextPart | ThinkingPart):
            return part
        told, content = "".join(self.texts[index])[: self.lengths[index]], clean.text(part.content)
        if content == told or not content.startswith(told):
            return part
        return replace(part, content=told) if isinstance(part, TextPart) else ThinkingPart(told)

    @property
    def parts(self) -> list[str]:
        return [f"{self.name}.{index}" for index in self.lengths]

    def _start(self, index: int, part: ModelResponsePart) -> None:
        self.open_parts[index] = f"{self.name}.{index}"
        self.lengths[index] = 0
        self.texts[index] = []
        self.masked[index] = MaskedStream(self.log.secrets)
        data: dict[str, Any] = {"part": self.open_parts[index], "kind": _kind(part)}
        if isinstance(part, ToolCallPart):
            self.calls.add(index)
            data |= {"call_id": clean.text(part.tool_call_id), "tool": clean.text(part.tool_name)}
        self.log.add(EventType.PART_STARTED, data)
        self._grow(index, _start_text(part))

    def _grow(self, index: int, text: str) -> None:
        if not text.isascii() or "\x00" in text or index in self.halves:
            text = self._whole(index, text)
        if text and index in self.open_parts:
            self.texts[index].append(text)
            self._tell(index, self.masked[index].feed(text))

    def _tell(self, index: int, text: str) -> None:
        if text:
            is_read = index not in self.calls
            self.log.add_delta(self.open_parts[index], self.lengths[index], text, is_read=is_read)
            self.lengths[index] += len(text)

    def _whole(self, index: int, text: str) -> str:
        """Without what no store takes; a half of a character waits for the other one."""
        text = self.halves.pop(index, "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self.halves[index], text = text[-1], text[:-1]
        return clean.text(text)


def _kind(part: ModelResponsePart) -> str:
    if isinstance(part, TextPart):
        return "text"
    if isinstance(part, ThinkingPart):
        return "reasoning"
    return "call" if isinstance(part, ToolCallPart) else part.part_kind


def _start_text(part: ModelResponsePart) -> str:
    if isinstance(part, TextPart | ThinkingPart):
        return _text(part.content)
    return _args_text(part.args) if isinstance(part, ToolCallPart) else ""


def _delta_text(delta: object) -> str:
    if isinstance(delta, TextPartDelta):
        return _text(delta.content_delta)
    if isinstance(delta, ThinkingPartDelta):
        return _text(delta.content_delta)
    return _args_text(delta.args_delta) if isinstance(delta, ToolCallPartDelta) else ""


def _text(said: Any) -> str:
    """What a model gives as text is what it likes."""
    return said if isinstance(said, str) else "" if said is None else clean.words_of(said)


def _args_text(args: Any) -> str:
    if args is None or isinstance(args, str):
        return args or ""
    return row_json.write(args)
