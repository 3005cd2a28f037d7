"""What the model is sent of a session: a summary of the oldest turns, if there is one, and the messages after it.

However long the session is, only these are read and decoded: what a turn costs does not grow with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import sqlalchemy as sa
import structlog
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, SystemPromptPart

from outlast.agents.messages import history
from outlast.agents.messages.history import Entry
from outlast.ids import SessionId, TurnId
from outlast.store.database import Database
from outlast.store.files.file_store import FileStore
from outlast.store.repositories import messages, summaries
from outlast.store.repositories.messages import MessageRow
from outlast.store.repositories.summaries import Summary
from outlast.values.redact import last_line

log = structlog.get_logger("outlast.sessions")


@dataclass(slots=True)
class Window:
    """`prefix`: the request that stands for all before `entries`; None when nothing is before them.

    `left_out`: about so many messages are before them that no summary tells of.
    """

    entries: list[Entry] = field(default_factory=list[Entry])
    prefix: ModelRequest | None = None
    left_out: int = 0
    system: Sequence[SystemPromptPart] = ()
    """The system prompt that the session began with."""

    @property
    def messages(self) -> list[ModelMessage]:
        """As pydantic-ai is given them."""
        found: list[ModelMessage] = [each.message for each in self.entries]
        return found if self.prefix is None else [self.prefix, *found]

    @property
    def is_whole(self) -> bool:
        return self.prefix is None and self.left_out == 0


async def load(
    database: Database, files: FileStore, session_id: SessionId, *, turn_id: TurnId, most: int | None
) -> Window:
    """`most`: past twice as many messages without a summary, only the last ones are read. All of the turn's own are."""
    if most is None:
        return _whole(await history.load(database, files, session_id))

    def look(connection: sa.Connection) -> tuple[Summary | None, int, MessageRow | None]:
        summary = summaries.latest(connection, session_id)
        last = messages.last_position(connection, session_id)
        return summary, last - (0 if summary is None else summary.up_to), _first(connection, session_id)

    summary, count, first = await database.read(look)
    after, left_out = 0 if summary is None else summary.up_to, 0
    if count > 2 * most:
        start = await database.read(lambda connection: messages.start_of_turn(connection, session_id, turn_id))
        begin = await database.read(lambda connection: messages.position_of_nth_last(connection, session_id, most))
        after, left_out = max(after, min(begin, start or begin) - 1), 1
    entries = await history.load(database, files, session_id, after=after)
    if left_out:
        left_out = after if summary is None else after - summary.up_to
        entries, skipped = _from_a_turn(entries, turn_id)
        left_out += skipped
    prefix = None if summary is None else await _prefix(files, summary)
    window = Window(entries, prefix, left_out)
    if not window.is_whole and first is not None:
        window.system = _system_of(await history.read_row(files, first))
    return window


def _whole(entries: list[Entry]) -> Window:
    return Window(entries, system=_system_of(entries[0].message) if entries else ())


def _first(connection: sa.Connection, session_id: SessionId) -> MessageRow | None:
    found = messages.page(connection, session_id, limit=1, seen_only=True)
    return found[0] if found else None


def _from_a_turn(entries: list[Entry], turn_id: TurnId) -> tuple[list[Entry], int]:
    """From the beginning of a turn on, so that no call stands without its result."""
    for at, (before, each) in enumerate(pairwise(entries), 1):
        if begins(before.message, each.message) or each.turn_id == turn_id:
            return entries[at:], at
    return entries, 0


def begins(before: ModelMessage, message: ModelMessage) -> bool:
    """Whether somebody speaks anew here: nothing that stands before waits for an answer."""
    if not isinstance(message, ModelRequest) or not isinstance(before, ModelResponse):
        return False
    return not history.answered_in(message) and not history.calls_of(before)


def _system_of(message: ModelMessage) -> Sequence[SystemPromptPart]:
    if not isinstance(message, ModelRequest):
        return ()
    return [part for part in message.parts if isinstance(part, SystemPromptPart)]


async def _prefix(files: FileStore, summary: Summary) -> ModelRequest | None:
    try:
        found = await history.decode(files, summary.body)
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        log.error("a stored summary cannot be read", up_to=summary.up_to, error=last_line(exc))
        return None
    return found if isinstance(found, ModelRequest) else None
