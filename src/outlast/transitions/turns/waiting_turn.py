"""A running turn that only waits: it takes none of its owner's places meanwhile."""

from outlast.ids import SessionId, TurnId
from outlast.store.repositories import turns
from outlast.store.repositories.turns import TurnState
from outlast.store.unit import Unit
from outlast.transitions.turns import turn_start


def mark(unit: Unit, session_id: SessionId, turn_id: TurnId, *, is_waiting: bool) -> None:
    """Who goes on takes its place again, also when that is one more than there are: what runs is never put off."""
    if not unit.try_lock(session_id) or unit.lock(session_id).turn_id != turn_id:
        return
    row = turns.get(unit.connection, turn_id)
    if row is None or row.state is not TurnState.RUNNING or row.is_waiting == is_waiting:
        return
    turns.set_values(unit, turn_id, is_waiting=is_waiting)
    if is_waiting and row.is_admitted:
        turn_start.admit_next(unit, row.owner_id)
