"""The work of an input: the turn that delivered it, and the turns that its background tasks woke.

A turn belongs to it when it delivered the input itself, or the wake of a task that a turn of it made. What people say
meanwhile starts turns of their own. Only tasks that wake count: nobody waits for a silent one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from outlast.events.outcome import Usage
from outlast.ids import InputId, SessionId, TaskId, TurnId
from outlast.store.repositories import turns as turn_rows
from outlast.store.repositories.inputs import UNDELIVERED, InputKind, InputState
from outlast.store.repositories.stored_task import WakePolicy, from_row
from outlast.store.tables import inputs, tasks, turns

_UNREADABLE: Mapping[str, Any] = {"requests": 0, "cost_microdollars": None}
"""In the place of a usage that cannot be read: from then on nobody knows what all of it cost."""


@dataclass(frozen=True, slots=True)
class InputWork:
    """As far as it has come."""

    turn_ids: Sequence[TurnId]
    """In the order in which they began; none before the input was delivered."""
    open_turn: TurnId | None
    open_tasks: Sequence[TaskId]
    is_coming: bool
    """The input, or a wake of its tasks, waits to be delivered."""
    is_gone: bool = False
    """The input was taken back before it was delivered."""

    @property
    def is_running(self) -> bool:
        return self.open_turn is not None or bool(self.open_tasks)

    @property
    def is_over(self) -> bool:
        return self.is_gone or not (self.is_running or self.is_coming)


def of_input(connection: sa.Connection, session_id: SessionId, input_id: InputId) -> InputWork:
    """What belongs to an input of this session by now, from its rows."""
    row = connection.execute(
        sa.select(inputs.c.turn_id, inputs.c.state).where(inputs.c.session_id == session_id, inputs.c.id == input_id)
    ).first()
    if row is None or row.state == InputState.REMOVED.value:
        return InputWork((), None, (), is_coming=False, is_gone=True)
    if row.turn_id is None:
        return InputWork((), None, (), is_coming=True)
    own, found, open_tasks, is_coming = {row.turn_id}, {row.turn_id}, list[TaskId](), False
    while found:
        made = _waking_tasks(connection, session_id, found)
        open_tasks += [TaskId(task_id) for task_id, is_open in made if is_open]
        ended = [task_id for task_id, is_open in made if not is_open]
        wakes = _wakes(connection, session_id, ended)
        is_coming = is_coming or any(state in UNDELIVERED for _, state in wakes)
        found = {turn_id for turn_id, _ in wakes if turn_id is not None} - own
        own |= found
    began = _in_order(connection, session_id, own)
    open_turn = next((TurnId(turn_id) for turn_id, is_open in began if is_open), None)
    return InputWork([TurnId(turn_id) for turn_id, _ in began], open_turn, open_tasks, is_coming)


def used(connection: sa.Connection, session_id: SessionId, turn_ids: Sequence[TurnId]) -> Usage:
    """What these turns used, and the tasks that they set going. A task of a sub-session counts all below it."""
    total = Usage()
    for turn_id in turn_ids:
        row = turn_rows.get(connection, turn_id)
        if row is not None and row.usage:
            total.add(row.usage)
    found = sa.select(tasks).where(
        tasks.c.session_id == session_id, tasks.c.turn_id.in_(turn_ids), tasks.c.usage.is_not(None)
    )
    for each in connection.execute(found).mappings():
        total.add(from_row(each).usage or _UNREADABLE)
    return total


def _waking_tasks(connection: sa.Connection, session_id: SessionId, turn_ids: set[str]) -> list[tuple[str, bool]]:
    found = connection.execute(
        sa.select(tasks.c.id, tasks.c.ended_at.is_(None)).where(
            tasks.c.session_id == session_id,
            tasks.c.turn_id.in_(turn_ids),
            tasks.c.wake == WakePolicy.ON_TERMINAL.value,
        )
    )
    return [(task_id, bool(is_open)) for task_id, is_open in found]


def _wakes(connection: sa.Connection, session_id: SessionId, task_ids: Sequence[str]) -> list[tuple[str | None, str]]:
    found = connection.execute(
        sa.select(inputs.c.turn_id, inputs.c.state).where(
            inputs.c.session_id == session_id,
            inputs.c.kind == InputKind.WAKE.value,
            inputs.c.task_id.in_(task_ids),
        )
    )
    return [(turn_id, state) for turn_id, state in found]


def _in_order(connection: sa.Connection, session_id: SessionId, turn_ids: set[str]) -> list[tuple[str, bool]]:
    found = connection.execute(
        sa.select(turns.c.id, turns.c.ended_at.is_(None))
        .where(turns.c.session_id == session_id, turns.c.id.in_(turn_ids))
        .order_by(turns.c.first_event)
    )
    return [(turn_id, bool(is_open)) for turn_id, is_open in found]
