"""News: what one commit appended to a session's log, brought along by the signal that tells of it in its process.

A reader that stands right before it needs no look at the database. Anybody else looks: news may be lost, late or
left out, and nothing depends on them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic_core import from_json

from outlast.clock import from_microseconds
from outlast.events.event import Event
from outlast.ids import SessionId

Line = Sequence[Any]
"""Number, type, instant in microseconds, turn, task, and the data as JSON: an event as it was written."""


@dataclass(frozen=True)
class News:
    """`after` is the last number that was given before; the lines have all numbers from there on."""

    session_id: SessionId
    after: int
    lines: Sequence[Line]

    @property
    def last(self) -> int:
        return self.lines[-1][0]

    @cached_property
    def events(self) -> list[Event]:
        """As a look at the database would give them; made once, however many read them."""
        return [
            Event(self.session_id, number, type_, from_microseconds(at_us), from_json(data), turn_id, task_id)
            for number, type_, at_us, turn_id, task_id, data in self.lines
        ]


def news_of(rows: Iterable[Sequence[Any]]) -> list[News]:
    """Of the rows that one commit wrote, in order: a session, and a line."""
    found: dict[SessionId, list[Line]] = {}
    for session_id, *line in rows:
        found.setdefault(session_id, []).append(line)
    return [News(session_id, lines[0][0] - 1, lines) for session_id, lines in found.items()]
