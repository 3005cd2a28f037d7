"""The playback of one reply: a flat list of beats, and a cursor that plays them."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias, assert_never
from uuid import uuid4

from pydantic_core import to_json

from outlast.testing.failure import raise_failure
from outlast.testing.step import Call, Delay, Failure, Gate, Item, Pace, Reasoning, Text


@dataclass(frozen=True)
class TextDelta:
    part: int
    content: str


@dataclass(frozen=True)
class ReasoningDelta:
    part: int
    content: str


@dataclass(frozen=True)
class CallDelta:
    """A piece of a call's JSON arguments. Every piece carries the id, only the first one the tool."""

    part: int
    content: str
    call_id: str
    tool: str | None


Delta: TypeAlias = TextDelta | ReasoningDelta | CallDelta
Beat: TypeAlias = Delta | Delay | Gate | Failure


def beats(items: Sequence[Item]) -> Iterator[Beat]:
    """Cut items into the deltas, waits and failures they consist of, numbering the parts of the response."""
    numbers = count()
    part, open_kind = next(numbers), None
    for item in items:
        if isinstance(item, Delay | Gate | Failure):
            yield item
            continue
        kind = type(item)
        if open_kind is not None and (kind is Call or kind is not open_kind):
            part = next(numbers)
        open_kind = kind
        yield from _part_beats(item, part)


class PlaybackClosed(Exception):
    """The reader closed the playback; stands for the broken connection of a real provider."""


class Playback:
    """Plays beats one after another. Between two deltas it holds nothing, so it may simply be dropped."""

    def __init__(self, items: Sequence[Item], *, model_name: str, is_streamed: bool) -> None:
        self._beats = beats(items)
        self._model_name = model_name
        self._is_streamed = is_streamed
        self._has_begun = False
        self._is_closed = False
        self._waiting: asyncio.Task[None] | None = None

    async def next_delta(self) -> Delta | None:
        """Wait as scripted and give the next delta; None at the end. Raises the scripted failure.

        Once closed it raises `PlaybackClosed`, also out of a wait that was going on.
        """
        for beat in self._beats:
            if self._is_closed:
                raise PlaybackClosed
            if isinstance(beat, Delay | Gate):
                await self._wait(beat)
            elif isinstance(beat, Failure):
                in_stream = self._is_streamed and self._has_begun
                raise_failure(beat, model_name=self._model_name, in_stream=in_stream)
            else:
                self._has_begun = True
                return beat
        return None

    def close(self) -> None:
        """Say no more, from any task of this loop, even while another one waits for the next delta."""
        self._is_closed = True
        if self._waiting is not None:
            self._waiting.cancel()

    async def _wait(self, wait: Delay | Gate) -> None:
        # A task of its own, so that `close` ends the wait without cancelling the reader.
        self._waiting = asyncio.create_task(_pass(wait), name="scripted wait")
        try:
            await self._waiting
        except asyncio.CancelledError:
            reader = asyncio.current_task()
            if self._is_closed and not (reader and reader.cancelling()):
                raise PlaybackClosed from None
            raise
        finally:
            self._waiting = None


def _part_beats(item: Text | Reasoning | Call, part: int) -> Iterator[Beat]:
    if isinstance(item, Text):
        yield from _paced([TextDelta(part, piece) for piece in _pieces(item.content, item.pace)], item.pace)
    elif isinstance(item, Reasoning):
        deltas = [ReasoningDelta(part, piece) for piece in _pieces(item.content, item.pace)]
        yield from _paced(deltas, item.pace)
    elif isinstance(item, Call):  # pyright: ignore[reportUnnecessaryIsInstance]
        yield from _paced(_call_deltas(item, part), item.pace)
    else:
        assert_never(item)


def _call_deltas(item: Call, part: int) -> list[CallDelta]:
    json = item.arguments if isinstance(item.arguments, str) else to_json(item.arguments).decode()
    call_id = item.call_id or f"call_{uuid4().hex}"
    return [
        CallDelta(part, piece, call_id, item.tool if number == 0 else None)
        for number, piece in enumerate(_pieces(json, item.pace))
    ]


def _pieces(content: str, pace: Pace) -> list[str]:
    # Nothing to say is still one piece: it opens the part.
    size = pace.chunk or len(content) or 1
    return [content[start : start + size] for start in range(0, len(content), size)] or [""]


def _paced(deltas: Sequence[Delta], pace: Pace) -> Iterator[Beat]:
    for number, delta in enumerate(deltas):
        if number and pace.pause is not None:
            yield pace.pause
        yield delta


async def _pass(wait: Delay | Gate) -> None:
    if isinstance(wait, Delay):
        await asyncio.sleep(wait.seconds)
    elif isinstance(wait.opened_by, asyncio.Event):
        await wait.opened_by.wait()
    else:
        await wait.opened_by()
