"""Folding the deltas of an ended part into one event, and cutting it for a reader who has part of it.

A folded event takes the last delta's number, keeps the first in `first`, and remembers in `marks`
how far the text had come at each number it replaces: `[number - first, end offset]`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from pydantic_core import to_json

from outlast.events.event import Event
from outlast.events.types import EventType

_MOST_DELTAS = 512
_MOST_BYTES = 128 * 1024


@dataclass(frozen=True, slots=True)
class Folded:
    event: Event
    replaces: Sequence[int]


def fold(deltas: Iterable[Event]) -> Iterator[Folded]:
    """Fold the deltas of each part, given in order. Bounded: a long part becomes several events.

    Never across an event that stands between two deltas: whoever has read just up to that one would be taken
    for somebody who has the text before it, which now stands behind it.
    """
    by_part = sorted(deltas, key=lambda event: (event.data["part"], event.number))
    for _, part in groupby(by_part, key=lambda event: event.data["part"]):
        for group in _bounded(part):
            if len(group) > 1:
                yield Folded(_merge(group), [_number(event) for event in group])


def cut(event: Event, after: int) -> Event:
    """What of a folded event comes after a number; any other event as it is."""
    first = event.data.get("first") if event.type == EventType.PART_DELTA else None
    if first is None or after < first:
        return event
    end = max((offset for step, offset in event.data["marks"] if first + step <= after), default=None)
    if end is None:
        return event
    data = dict(event.data)
    data["text"] = data["text"][end - data["offset"] :]
    data["offset"] = end
    return replace(event, data=data)


def _bounded(part: Iterable[Event]) -> Iterator[list[Event]]:
    group: list[Event] = []
    size = count = 0
    for event in part:
        length = len(to_json(event.data["text"]))
        is_full = count + len(_marks(event)) > _MOST_DELTAS or size + length > _MOST_BYTES
        if group and (is_full or _start(event) != _number(group[-1]) + 1):
            yield group
            group, size, count = [], 0, 0
        group.append(event)
        size += length
        count += len(_marks(event))
    if group:
        yield group


def _merge(group: Sequence[Event]) -> Event:
    first, last = group[0], group[-1]
    start = _start(first)
    marks = [[number - start, offset] for event in group for number, offset in _marks(event)]
    data = {
        **first.data,
        "text": "".join(event.data["text"] for event in group),
        "first": start,
        "marks": marks,
    }
    return replace(last, data=data)


def _marks(event: Event) -> list[tuple[int, int]]:
    if "marks" in event.data:
        return [(event.data["first"] + step, offset) for step, offset in event.data["marks"]]
    return [(_number(event), event.data["offset"] + len(event.data["text"]))]


def _start(event: Event) -> int:
    return event.data.get("first", event.number)


def _number(event: Event) -> int:
    assert event.number is not None
    return event.number
