"""What is kept of a turn whose log is no longer kept: few events that fold to the same.

A view, an outcome or the messages of another protocol that is made of them is the one that the whole log made.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from outlast.events.event import Event
from outlast.events.types import EventType
from outlast.events.views import turn_fold

_OF_TASKS = frozenset({EventType.TASK_CREATED, EventType.TASK_CHANGED, EventType.TASK_ENDED})
TYPES = turn_fold.TYPES | _OF_TASKS


def kept(events: Iterable[Event]) -> list[Event]:
    """Of events that follow one another: the text of a part in one event.

    Of what is told of a task, and of how far a call was: the first, which says where it stands among the others, and
    the last.
    """
    found: list[Event] = []
    texts: dict[Any, int] = {}
    news: dict[Any, list[int]] = {}
    gone: set[int] = set()
    for event in events:
        if event.type not in TYPES:
            continue
        at = len(found)
        match event.type:
            case EventType.PART_STARTED:
                texts.pop((event.turn_id, event.data["part"]), None)
            case EventType.PART_DELTA:
                first = texts.setdefault((event.turn_id, event.data["part"]), at)
                before = found[first].data["text"] if first < at else ""
                event = _plain(event, before + event.data["text"])
                if first < at:
                    found[first] = event
                    continue
            case EventType.CALL_PROGRESS:
                _note(news, (event.turn_id, event.data["call_id"]), at, gone)
            case _ if event.type in _OF_TASKS:
                _note(news, event.data["task"]["id"], at, gone)
            case _:
                pass
        found.append(event)
    return [event for at, event in enumerate(found) if at not in gone]


def _note(news: dict[Any, list[int]], what: Any, at: int, gone: set[int]) -> None:
    told = news.setdefault(what, [])
    if len(told) == 2:
        gone.add(told.pop())
    told.append(at)


def _plain(event: Event, text: str) -> Event:
    """Without what a reader needs who has a part of it."""
    data = {name: value for name, value in event.data.items() if name not in ("first", "marks")}
    return replace(event, data=data | {"text": text, "offset": 0})
