"""What a list of sessions says of each beside its own row: how its last turn ended, and how much is open in it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from outlast.clock import from_microseconds
from outlast.ids import TurnId
from outlast.store.repositories.turns import ERROR
from outlast.store.sql.statement import Row
from outlast.store.tables import inputs, sessions, tasks, turns
from outlast.values import row_json
from outlast.wire.task_state import TaskState


@dataclass(frozen=True, slots=True)
class LastTurn:
    """How it ended: completed, failed (with an error) or stopped (with a reason)."""

    id: TurnId
    state: str
    ended_at: datetime
    error: dict[str, Any] | None = None
    reason: str | None = None


class Counts(NamedTuple):
    """Of a session: tasks that have not ended, those among them that wait for somebody, messages that wait."""

    open_tasks: int = 0
    awaiting_input: int = 0
    waiting_messages: int = 0


NOTHING_OPEN = Counts()
_last = turns.alias("last_turn")
_newest = turns.alias("newest_turn")
_NEWEST = (
    sa.select(_newest.c.id)
    .where(_newest.c.session_id == sessions.c.id, _newest.c.ended_at.is_not(None))
    .order_by(_newest.c.first_event.desc())
    .limit(1)
    .scalar_subquery()
)


def _tasks(*states: TaskState) -> sa.ScalarSelect[int]:
    is_one = sa.or_(*(tasks.c.state == each.value for each in states))
    found = sa.select(sa.func.count()).select_from(tasks).where(tasks.c.session_id == sessions.c.id, is_one)
    return found.scalar_subquery()


_MESSAGES = (
    sa.select(sa.func.count())
    .select_from(inputs)
    .where(inputs.c.session_id == sessions.c.id, inputs.c.state == "waiting", inputs.c.kind == "message")
    .scalar_subquery()
)
COLUMNS = (
    _last.c.id.label("last_turn_id"),
    _last.c.state.label("last_turn_state"),
    _last.c.ended_at.label("last_turn_ended_at"),
    _last.c.error.label("last_turn_error"),
    _last.c.stop_reason.label("last_turn_reason"),
    _tasks(TaskState.QUEUED, TaskState.RUNNING, TaskState.AWAITING_INPUT).label("open_tasks"),
    _tasks(TaskState.AWAITING_INPUT).label("awaiting_input"),
    _MESSAGES.label("waiting_messages"),
)


def joined(chosen: sa.Join) -> sa.Join:
    """Sessions with the last of their turns that is over."""
    return chosen.outerjoin(_last, _last.c.id == _NEWEST)


def last_turn(row: Row) -> LastTurn | None:
    if row["last_turn_id"] is None:
        return None
    error = row["last_turn_error"]
    return LastTurn(
        TurnId(row["last_turn_id"]),
        row["last_turn_state"],
        from_microseconds(row["last_turn_ended_at"]),
        None if error is None else row_json.read_object(error, ERROR),
        row["last_turn_reason"] if row["last_turn_state"] == "stopped" else None,
    )


def counts(row: Row) -> Counts:
    return Counts(row["open_tasks"], row["awaiting_input"], row["waiting_messages"])
