"""Pausing: workers start nothing new while everything is accepted; what runs goes on. It survives restarts."""

from outlast.store import pauses, tasks, turns
from outlast.store.outbox import Work
from outlast.store.pauses import Pause
from outlast.store.unit import Unit
from outlast.tasks import service


def begin(unit: Unit, *, by: str) -> Pause:
    return pauses.begin(unit, by)


def end(unit: Unit) -> bool:
    """Submit again what was not started meanwhile. False when there was no pause."""
    if not pauses.end(unit):
        return False
    for row in turns.queued_and_admitted(unit.connection):
        unit.submit(Work(row.id, row.owner_id, row.agent, row.not_before))
    for work in service.in_turn(tasks.queued(unit.connection)):
        unit.submit(work)
    return True
