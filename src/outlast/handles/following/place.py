"""How far a reader of the feed is, the cursor that says so, and the positions that a reader may ask for."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from outlast.errors import InvalidInput
from outlast.ids import SessionId, TaskId

MOST_LOGS = 20
"""Sessions whose whole logs one stream may carry: each costs a read whenever something happens."""
MOST_OUTPUTS = 20
NOW = "now"
END = "end"
_CURSOR = re.compile(r"1\.(\d{1,18})((?:\.ses_[0-9a-z]{26}:\d{1,18})*)")
_NUMBER = re.compile(r"(?a)\d{1,18}")


@dataclass(slots=True)
class Place:
    """In the feed, and in each log that was asked for.

    A log is never ahead of the feed by a change of state. So a reader may come back and ask for other logs: what it
    had from a log it no longer asks for is exactly what the feed has told it.
    """

    number: int = 0
    logs: dict[SessionId, int] = field(default_factory=dict[SessionId, int])

    def copy(self) -> "Place":
        return Place(self.number, dict(self.logs))

    @property
    def cursor(self) -> str:
        if not self.logs:
            return f"1.{self.number}"
        return ".".join([f"1.{self.number}", *[f"{id}:{number}" for id, number in self.logs.items()]])


def parse(cursor: str) -> Place:
    parts = _CURSOR.fullmatch(cursor)
    if parts is None:
        raise InvalidInput("This is not a cursor of the feed: give the one that came with an event, or none.")
    logs = (each.rpartition(":") for each in parts[2].split(".")[1:])
    return Place(int(parts[1]), {SessionId(id): int(number) for id, _, number in logs})


def asked_logs(sessions: Sequence[str]) -> Mapping[SessionId, int | str | None]:
    """Of each log, the position that was asked for: a number, `now`, or None where none was given."""
    if len(sessions) > MOST_LOGS:
        raise InvalidInput(f"{len(sessions)} logs are too many for one stream: ask for at most {MOST_LOGS}.")
    return {SessionId(id): position for id, position in (_asked(each, NOW) for each in sessions)}


def asked_outputs(outputs: Sequence[str]) -> Mapping[TaskId, int | str | None]:
    """Of each task, the offset that was asked for: a number, `end`, or None where none was given."""
    if len(outputs) > MOST_OUTPUTS:
        raise InvalidInput(f"{len(outputs)} outputs are too many for one stream: ask for at most {MOST_OUTPUTS}.")
    return {TaskId(id): offset for id, offset in (_asked(each, END) for each in outputs)}


def without_known(sessions: Sequence[str], cursor: str | None) -> list[str]:
    """For a reader that comes back with its cursor to the address it began with: what the cursor knows is newer."""
    if cursor is None or cursor == NOW:
        return list(sessions)
    known = parse(cursor).logs
    return [id if SessionId(id) in known else each for each in sessions for id in (each.partition(":")[0],)]


def _asked(asked: str, word: str) -> tuple[str, int | str | None]:
    id, has_position, position = asked.partition(":")
    if not has_position or position == word:
        return id, position or None
    if not _NUMBER.fullmatch(position):
        raise InvalidInput(f"{asked!r} does not say where to begin: give id:number, id:{word}, or the id alone.")
    return id, int(position)
