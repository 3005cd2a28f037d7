"""Turns that this worker has claimed and does not run: no reader may hang on one."""

from collections.abc import Callable
from functools import partial

import structlog

from outlast.ids import TurnId, WorkerId
from outlast.store.database import Database
from outlast.store.repositories import turns
from outlast.store.unit import Unit
from outlast.transitions import turn
from outlast.transitions.turn import Fence

log = structlog.get_logger("outlast.duties")


class UnrunTurns:
    """Gives back only what it found twice: the end of a turn may have been committed just now."""

    def __init__(self, database: Database, *, me: Callable[[], WorkerId], runs: Callable[[TurnId], bool]) -> None:
        self._database = database
        self._me = me
        self._runs = runs
        self._seen: frozenset[Fence] = frozenset()

    async def give_back(self) -> None:
        held = await self._database.glance(lambda connection: turns.running_under(connection, self._me()))
        unrun = frozenset(Fence(row.session_id, row.id, row.attempt) for row in held if not self._runs(row.id))
        for fence in unrun & self._seen:
            log.error("nothing ran a turn that was claimed: it is given back", turn_id=fence.turn_id)
            await self._database.transaction(partial(_give_back, fence=fence), name="give_back")
        self._seen = unrun


def _give_back(unit: Unit, fence: Fence) -> None:
    unit.lock_free([fence.session_id])
    if unit.has_locked(fence.session_id):  # or somebody holds it: the next look finds the turn again
        turn.give_back(unit, fence, has_crashed=True)
