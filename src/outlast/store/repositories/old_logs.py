"""Logs that were kept long enough: whole ended turns go from the beginning of a log, and their folds stay.

From the commit that takes a turn out of its log nobody begins to read there any more; its rows go later. A turn is
taken out when nothing of its session is open that was so while the turn ran.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from outlast.clock import from_microseconds, to_microseconds
from outlast.events.event import Event
from outlast.events.stream import Page
from outlast.ids import SessionId, TurnId
from outlast.store.repositories import events, folds
from outlast.store.repositories.inputs import UNDELIVERED
from outlast.store.tables import events as log
from outlast.store.tables import inputs, removed_logs, sessions, tasks
from outlast.store.tables import turns as turn_rows
from outlast.store.unit import Unit

READ_ON = timedelta(minutes=10)
"""So long the rows stay for those who were reading them."""
_PAGE = 500
_MOST_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class OldTurn:
    id: TurnId
    session_id: SessionId
    ended_at: int


@dataclass(frozen=True, slots=True)
class Part:
    """A page of a log that is not folded yet. `after`: where it begins; `is_last`: it ends with the turn."""

    turn: OldTurn
    after: int
    up_to: int
    events: Sequence[Event]
    is_last: bool


def old_turns(connection: sa.Connection, before: datetime, *, after: OldTurn | None, limit: int) -> list[OldTurn]:
    """Turns that ended before an instant and are in their logs, the oldest first; after another one."""
    at = turn_rows.c
    chosen = (
        sa.select(at.id, at.session_id, at.ended_at)
        .join(sessions, sessions.c.id == at.session_id)
        .where(
            at.ended_at.is_not(None),
            at.log_removed_at.is_(None),
            at.ended_at < to_microseconds(before),
            *_is_quiet(),
        )
    )
    if after is not None:
        chosen = chosen.where(sa.tuple_(at.ended_at, at.id) > sa.tuple_(after.ended_at, after.id))
    found = connection.execute(chosen.order_by(at.ended_at, at.id).limit(limit))
    return [OldTurn(TurnId(id), SessionId(session_id), ended_at) for id, session_id, ended_at in found]


def next_part(connection: sa.Connection, turn: OldTurn) -> Part | None:
    """None when the turn may not be taken out of its log now."""
    place = _place(connection, turn)
    if place is None:
        return None
    after, end = place
    page: list[Event] = []
    size = 0
    for event in events.page(connection, turn.session_id, after, _PAGE):
        number = event.number or 0
        if end is not None and number >= end:
            return Part(turn, after, end - 1, page, is_last=True)
        page.append(event)
        size += len(str(event.data))
        if event.turn_id == turn.id and event.is_terminal:
            return Part(turn, after, number, page, is_last=True)
        if size > _MOST_BYTES:
            break
    return Part(turn, after, page[-1].number or 0, page, is_last=False) if page else None


def _place(connection: sa.Connection, turn: OldTurn) -> tuple[int, int | None] | None:
    """After which event its log is not folded yet, and where the next turn begins.

    None unless it stands first in its log and what is open in its session began after it.
    """
    row = connection.execute(
        sa.select(turn_rows.c.first_event, sessions.c.first_event.label("kept_from"), sessions.c.parent_id)
        .join(sessions, sessions.c.id == turn_rows.c.session_id)
        .where(turn_rows.c.id == turn.id, turn_rows.c.log_removed_at.is_(None), *_is_quiet())
    ).first()
    if row is None:
        return None
    others = sa.select(turn_rows.c.id).where(turn_rows.c.session_id == turn.session_id)
    earlier = others.where(turn_rows.c.first_event < row.first_event, turn_rows.c.log_removed_at.is_(None))
    if connection.execute(earlier.limit(1)).first() is not None:
        return None
    if _is_open(connection, turn) or _is_awaited(connection, row.parent_id):
        return None
    later = sa.select(sa.func.min(turn_rows.c.first_event)).where(
        turn_rows.c.session_id == turn.session_id, turn_rows.c.first_event > row.first_event
    )
    folded = folds.last_number(connection, turn.session_id, turn.id)
    return row.kept_from - 1 if folded is None else folded, connection.execute(later).scalar()


def _is_open(connection: sa.Connection, turn: OldTurn) -> bool:
    """Whether a task is open or an input waits in its session that was there before its end."""
    waits = inputs.c.state.in_(UNDELIVERED)
    opened = (
        sa.select(tasks.c.id).where(
            tasks.c.session_id == turn.session_id, tasks.c.ended_at.is_(None), tasks.c.created_at <= turn.ended_at
        ),
        sa.select(inputs.c.id).where(
            inputs.c.session_id == turn.session_id, waits, inputs.c.created_at <= turn.ended_at
        ),
    )
    return any(connection.execute(each.limit(1)).first() is not None for each in opened)


def _is_awaited(connection: sa.Connection, parent_id: str | None) -> bool:
    """Whether the session that it works for runs or waits."""
    if parent_id is None:
        return False
    runs = sa.select(sessions.c.id).where(
        sessions.c.id == parent_id, sessions.c.deleted_at.is_(None), sessions.c.turn_id.is_not(None)
    )
    waits = sa.select(tasks.c.id).where(tasks.c.session_id == parent_id, tasks.c.ended_at.is_(None))
    return any(connection.execute(each.limit(1)).first() is not None for each in (runs, waits))


def _is_quiet() -> Sequence[sa.ColumnElement[bool]]:
    """Sessions of which nobody is to say anything: not held, and no call of unknown effect."""
    return (
        sessions.c.deleted_at.is_(None),
        sessions.c.is_held.is_(False),
        sessions.c.interrupted_calls == "[]",
    )


def fold(unit: Unit, part: Part, kept: Sequence[Event]) -> bool:
    """Keep what a page folds to; with the last one the turn leaves the log. False when it may not, or did already."""
    turn = part.turn
    if not unit.try_lock(turn.session_id):
        return False
    place = _place(unit.connection, turn)
    if place is None or place[0] != part.after:
        return False
    folds.add(unit, turn.session_id, turn.id, kept, up_to=part.up_to)
    if part.is_last:
        _take_out(unit, turn, up_to=part.up_to)
    return True


def _take_out(unit: Unit, turn: OldTurn, *, up_to: int) -> None:
    session = unit.lock(turn.session_id)
    session.set(first_event=up_to + 1, updated_at=session.updated_at)
    done = sa.update(turn_rows).where(turn_rows.c.id == turn.id).values(log_removed_at=unit.now_us)
    unit.connection.execute(done)
    insert = postgresql.insert if unit.dialect == "postgresql" else sqlite.insert
    values = {"session_id": turn.session_id, "up_to": up_to, "emptied_to": 0, "at": unit.now_us}
    unit.connection.execute(
        insert(removed_logs)
        .values(values)
        .on_conflict_do_update(index_elements=["session_id"], set_={"up_to": up_to, "at": unit.now_us})
    )


def rows_that_left(unit: Unit, before: datetime, *, limit: int) -> int:
    """Rows of turns that left their logs before an instant: some of one log."""
    left = (removed_logs.c.emptied_to < removed_logs.c.up_to, removed_logs.c.at < to_microseconds(before))
    found = unit.connection.execute(
        sa.select(removed_logs).where(*left).order_by(removed_logs.c.at).limit(1).with_for_update(skip_locked=True)
    ).first()
    if found is None:
        return 0
    own = (log.c.session_id == found.session_id, log.c.number <= found.up_to)
    some = sa.select(log.c.number).where(*own).order_by(log.c.number).limit(limit)
    numbers = list(unit.connection.execute(some).scalars())
    end = numbers[-1] if len(numbers) == limit else found.up_to
    unit.connection.execute(sa.delete(log).where(*own, log.c.number <= end))
    done = sa.update(removed_logs).where(removed_logs.c.session_id == found.session_id)
    unit.connection.execute(done.values(emptied_to=end))
    return max(1, len(numbers))


def read_on(connection: sa.Connection, session_id: SessionId, after: int, limit: int, *, last: int) -> Page | None:
    """The next page for who was reading here as it left the log; None when the rows are gone."""
    found = events.page(connection, session_id, after, limit)
    # Asked last: what was there then was there before as well.
    query = sa.select(removed_logs.c.emptied_to).where(removed_logs.c.session_id == session_id)
    emptied_to: int | None = connection.execute(query).scalar()
    return None if emptied_to is None or after < emptied_to else Page(found, after + 1, last)


def removed_at(connection: sa.Connection, session_id: SessionId) -> datetime | None:
    """When a turn last left the log; None when none has."""
    query = sa.select(removed_logs.c.at).where(removed_logs.c.session_id == session_id)
    found = connection.execute(query).scalar()
    return None if found is None else from_microseconds(found)
