"""What is old enough is removed, some rows in each transaction, the oldest first."""

from datetime import datetime

import sqlalchemy as sa

from outlast.clock import from_microseconds, to_microseconds
from outlast.store import removed_sessions
from outlast.store.repositories.inputs import UNDELIVERED
from outlast.store.tables import creations, feed, fires, inputs, outputs, removals, tasks, turns, webhook_deliveries
from outlast.store.unit import Unit

FEED = "feed"


def output_of_ended_tasks(unit: Unit, before: datetime, *, limit: int) -> int:
    """Of each keep only how long it was. A task that has not ended keeps its own, however old it is.

    At most `limit` rows of output; a task whose rows are more is gone on with. It is marked with the last of them.
    """
    ended = (
        sa.select(tasks.c.id, tasks.c.session_id, tasks.c.call_id)
        .where(
            tasks.c.ended_at.is_not(None),
            tasks.c.ended_at < to_microseconds(before),
            tasks.c.output_removed_at.is_(None),
        )
        .order_by(tasks.c.ended_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    removed = 0
    for task_id, session_id, call_id in unit.connection.execute(ended).all():
        if removed >= limit:
            break
        count, is_all = _keep_length_only(unit, session_id, call_id or task_id, limit - removed)
        removed += max(1, count)
        if is_all:
            done = sa.update(tasks).where(tasks.c.id == task_id).values(output_removed_at=unit.now_us)
            unit.connection.execute(done)
    return removed


def _keep_length_only(unit: Unit, session_id: str, call_id: str, limit: int) -> tuple[int, bool]:
    """How many rows were removed, and whether no other is left."""
    own = (outputs.c.session_id == session_id, outputs.c.call_id == call_id)
    size = sa.func.length(outputs.c.text)
    found = sa.select(outputs.c.number, outputs.c.offset, size).where(*own).order_by(outputs.c.number)
    rows = unit.connection.execute(found.limit(limit + 1)).all()
    if not rows:
        return 0, True
    is_all = len(rows) <= limit
    number, offset, length = rows[-1]
    unit.connection.execute(sa.delete(outputs).where(*own, outputs.c.number < number))
    if is_all:
        end = sa.update(outputs).where(*own, outputs.c.number == number)
        unit.connection.execute(end.values(offset=offset + length, text=""))
    return len(rows) - 1 + is_all, is_all


def feed_lines(unit: Unit, before: datetime, *, limit: int) -> int:
    """Also remembers up to where: a reader from before is told that something is missing."""
    first = unit.connection.execute(sa.select(feed.c.number, feed.c.at).order_by(feed.c.number).limit(limit))
    numbers = [number for number, at in first if at < to_microseconds(before)]
    if not numbers:
        return 0
    unit.connection.execute(sa.delete(feed).where(feed.c.number.in_(numbers)))
    values = {"up_to": max(numbers), "at": unit.now_us}
    known = sa.update(removals).where(removals.c.kind == FEED).values(values)
    if unit.connection.execute(known).rowcount == 0:
        unit.connection.execute(sa.insert(removals).values(kind=FEED, **values))
    return len(numbers)


def removed_feed(connection: sa.Connection) -> int:
    """The number of the last line of all owners that was removed; 0 when none was."""
    return connection.execute(sa.select(removals.c.up_to).where(removals.c.kind == FEED)).scalar() or 0


def removed_feed_at(connection: sa.Connection) -> datetime | None:
    found = connection.execute(sa.select(removals.c.at).where(removals.c.kind == FEED)).scalar()
    return None if found is None else from_microseconds(found)


def ended_deliveries(unit: Unit, before: datetime, *, limit: int) -> int:
    at, key = (
        webhook_deliveries.c,
        sa.tuple_(webhook_deliveries.c.webhook_id, webhook_deliveries.c.session_id, webhook_deliveries.c.event),
    )
    old = (
        sa.select(at.webhook_id, at.session_id, at.event)
        .where(at.ended_at < to_microseconds(before), at.state != "pending")
        .limit(limit)
    )
    return unit.connection.execute(sa.delete(webhook_deliveries).where(key.in_(old))).rowcount


def past_fires(unit: Unit, before: datetime, *, limit: int) -> int:
    """Not those that still wait to run, nor those whose input waits, or whose turn or task is not over."""
    at, key = fires.c, sa.tuple_(fires.c.schedule_id, fires.c.number)
    of_turn = sa.and_(turns.c.id == inputs.c.turn_id, turns.c.ended_at.is_not(None))
    waits = sa.select(inputs.c.id).select_from(inputs.outerjoin(turns, of_turn))
    waits = waits.where(
        inputs.c.id == at.input_id,
        sa.or_(inputs.c.state.in_(UNDELIVERED), sa.and_(inputs.c.turn_id.is_not(None), turns.c.id.is_(None))),
    )
    runs = sa.select(tasks.c.id).where(tasks.c.id == at.task_id, tasks.c.ended_at.is_(None))
    old = (
        sa.select(at.schedule_id, at.number)
        .where(at.at < to_microseconds(before), at.outcome != "queued", ~waits.exists(), ~runs.exists())
        .limit(limit)
    )
    return unit.connection.execute(sa.delete(fires).where(key.in_(old))).rowcount


def idempotency_keys(unit: Unit, before: datetime, *, limit: int) -> int:
    key = sa.tuple_(creations.c.owner_id, creations.c.idempotency_key)
    old = (
        sa.select(creations.c.owner_id, creations.c.idempotency_key)
        .where(creations.c.created_at < to_microseconds(before))
        .limit(limit)
    )
    return unit.connection.execute(sa.delete(creations).where(key.in_(old))).rowcount


def notes_of_removed_sessions(unit: Unit, before: datetime, *, limit: int) -> int:
    return removed_sessions.remove_notes(unit.connection, before, limit=limit)


def output_removed_at(connection: sa.Connection, task_id: str) -> datetime | None:
    found = connection.execute(sa.select(tasks.c.output_removed_at).where(tasks.c.id == task_id)).scalar()
    return None if found is None else from_microseconds(found)
