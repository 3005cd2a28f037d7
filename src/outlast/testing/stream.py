"""The stream: a playback in the shape pydantic-ai reads responses in."""

from collections.abc import AsyncIterator, Iterator
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import assert_never

from pydantic_ai.messages import FinishReason, ModelResponseStreamEvent
from pydantic_ai.models import StreamedResponse
from pydantic_ai.usage import RequestUsage

from outlast.testing.playback import CallDelta, Delta, Playback, PlaybackClosed, ReasoningDelta, TextDelta
from outlast.testing.step import Call, Reply
from outlast.testing.tokens import tokens_in


@dataclass
class ScriptedStream(StreamedResponse):
    """Plays one reply, of which the first delta has been played already (None: the reply has no parts)."""

    name: str
    reply: Reply
    first: Delta | None
    playback: Playback
    input_tokens: int
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    characters: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._count(0)

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        delta = self.first
        while delta is not None:
            self._count(len(delta.content))
            for event in self._events(delta):
                yield event
            delta = await self.playback.next_delta()
        self.finish_reason = self.reply.finish_reason or self._usual_finish_reason()

    def _events(self, delta: Delta) -> Iterator[ModelResponseStreamEvent]:
        if isinstance(delta, TextDelta):
            return self._parts_manager.handle_text_delta(vendor_part_id=delta.part, content=delta.content)
        if isinstance(delta, ReasoningDelta):
            return self._parts_manager.handle_thinking_delta(vendor_part_id=delta.part, content=delta.content)
        if isinstance(delta, CallDelta):  # pyright: ignore[reportUnnecessaryIsInstance]
            return self._parts_manager.handle_tool_call_delta_events(
                vendor_part_id=delta.part,
                tool_name=delta.tool,
                args=delta.content,
                tool_call_id=delta.call_id,
            )
        assert_never(delta)

    def _count(self, characters: int) -> None:
        self.characters += characters
        # A copy: readers add to usage in place, and a step may be played again.
        self._usage = copy(self.reply.usage) or RequestUsage(
            input_tokens=self.input_tokens, output_tokens=tokens_in(self.characters)
        )

    def _usual_finish_reason(self) -> FinishReason:
        return "tool_call" if any(isinstance(item, Call) for item in self.reply.items) else "stop"

    async def close_stream(self) -> None:
        self.playback.close()

    def get_stream_cancel_errors(self) -> tuple[type[BaseException], ...]:
        return (PlaybackClosed,)

    @property
    def model_name(self) -> str:
        return self.name

    @property
    def provider_name(self) -> str:
        return "scripted"

    @property
    def provider_url(self) -> None:
        return None

    @property
    def timestamp(self) -> datetime:
        return self.started_at
