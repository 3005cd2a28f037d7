"""The output of a turn as the command prints it: all of it, however large."""

from collections.abc import Awaitable
from dataclasses import replace
from typing import Protocol

from outlast.errors import OutlastError
from outlast.events.event import Event
from outlast.events.outcome import Outcome
from outlast.events.shown import in_words, is_whole


class _Turn(Protocol):
    def outcome(self) -> Awaitable[Outcome]: ...


class _Session(Protocol):
    """Of a server, or of this process if its outputs are JSON."""

    def turn(self, turn_id: str, /) -> _Turn: ...


async def with_output(session: _Session, event: Event) -> Event:
    """The event with the whole output of its turn, which may not have fit into the log. Other events as they are.

    Where the rest cannot be had, its size and beginning stand in its place.
    """
    output = event.data.get("output")
    if event.type != "turn.completed" or event.turn_id is None or is_whole(output):
        return event
    try:
        whole = (await session.turn(event.turn_id).outcome()).output
    except OutlastError:
        whole = in_words(output)
    return replace(event, data={**event.data, "output": whole})
