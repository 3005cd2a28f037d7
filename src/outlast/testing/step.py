"""A step: what the model does with one request.

The lower-case functions are the vocabulary of a script; the classes are what they build. All of them are
immutable, so a step may be played any number of times.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pydantic_ai.messages import FinishReason
from pydantic_ai.usage import RequestUsage


@dataclass(frozen=True)
class Delay:
    seconds: float


@dataclass(frozen=True)
class Gate:
    opened_by: asyncio.Event | Callable[[], Awaitable[object]]


Wait: TypeAlias = Delay | Gate


@dataclass(frozen=True)
class Pace:
    """How a part is cut into deltas: `chunk` characters each (None: in one piece), `pause` between two."""

    chunk: int | None
    pause: Wait | None


@dataclass(frozen=True)
class Text:
    content: str
    pace: Pace


@dataclass(frozen=True)
class Reasoning:
    content: str
    pace: Pace


@dataclass(frozen=True)
class Call:
    """A tool call. `arguments` is JSON text, or a mapping that is encoded when played."""

    tool: str
    arguments: str | Mapping[str, object]
    call_id: str | None
    pace: Pace


@dataclass(frozen=True)
class Failure:
    cause: int | BaseException
    body: object | None
    retry_after: float | None


Item: TypeAlias = Text | Reasoning | Call | Delay | Gate | Failure


@dataclass(frozen=True)
class Reply:
    """One whole response: its items in order, and the facts a provider reports beside them."""

    items: tuple[Item, ...]
    usage: RequestUsage | None = None
    finish_reason: FinishReason | None = None


Step: TypeAlias = str | Item | Reply | Sequence[str | Item]
"""A reply, or a short form of one: a string, a single item, or a list of items and strings."""


def text(content: str, *, chunk: int | None = None, pause: float | Wait = 0) -> Text:
    """Text. Neighbouring texts become one part, so a delay or gate between them falls inside that part.

    With `chunk`, the text arrives in pieces of that many characters with `pause` between two pieces:
    seconds, or a `gate` to hold the stream after the first piece.
    """
    return Text(content, _pace(chunk, pause))


def reasoning(content: str, *, chunk: int | None = None, pause: float | Wait = 0) -> Reasoning:
    """Thinking that precedes an answer; chunked and joined like `text`."""
    return Reasoning(content, _pace(chunk, pause))


def call(
    tool: str,
    arguments: str | Mapping[str, object] | None = None,
    /,
    *,
    call_id: str | None = None,
    chunk: int | None = None,
    pause: float | Wait = 0,
    **named: object,
) -> Call:
    """Call a tool: `call("search", query="oslo")`.

    Arguments named `call_id`, `chunk` or `pause` go into a mapping: `call("pump", {"pause": 3})`. A string
    is sent as it is, so a test can send broken JSON. Without `call_id` each play makes a new id that no
    other process makes; with it the id is the same in every play.
    """
    if isinstance(arguments, str):
        if named:
            raise TypeError("give a call either JSON text or named arguments, not both")
        return Call(tool, arguments, call_id, _pace(chunk, pause))
    return Call(tool, {**(arguments or {}), **named}, call_id, _pace(chunk, pause))


def calls(tool: str, /, *arguments: Mapping[str, object]) -> list[Call]:
    """Call one tool several times in parallel: `calls("search", {"query": "oslo"}, {"query": "rome"})`.

    A step by itself; inside a longer one, unpack it: `[text("Both:"), *calls(...)]`.
    """
    return [call(tool, each) for each in arguments]


def delay(seconds: float) -> Delay:
    """Wait, as a slow provider would. First in a step it delays the opening of the response."""
    return Delay(seconds)


def gate(opened_by: asyncio.Event | Callable[[], Awaitable[object]], /) -> Gate:
    """Wait until the event is set or the async function returns: an exact place to stop a stream at.

    What the function raises, the request raises.
    """
    return Gate(opened_by)


def error(cause: int | BaseException, /, *, body: object | None = None, retry_after: float | None = None) -> Failure:
    """Fail: with an exception as it is, or with the error a provider causes by that HTTP status.

    Before any text, reasoning or call the request itself fails; after one, the open stream breaks.
    """
    return Failure(cause, body, retry_after)


def reply(*items: str | Item, usage: RequestUsage | None = None, finish_reason: FinishReason | None = None) -> Reply:
    """A response with given usage numbers or finish reason; both are made up plausibly when left out.

    Given usage counts from the first byte on, also if the response is cut off.
    """
    parts = tuple(text(item) if isinstance(item, str) else item for item in items)
    return Reply(parts, usage, finish_reason)


def as_reply(step: Step) -> Reply:
    """The full form of a step."""
    if isinstance(step, Reply):
        return step
    if isinstance(step, str | Text | Reasoning | Call | Delay | Gate | Failure):
        return reply(step)
    return reply(*step)


def _pace(chunk: int | None, pause: float | Wait) -> Pace:
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk is a number of characters, at least 1, not {chunk}")
    if isinstance(pause, Delay | Gate):
        return Pace(chunk, pause)
    return Pace(chunk, Delay(pause) if pause else None)
