"""Pausing: workers start nothing new while everything is accepted; what runs goes on. It survives restarts."""

from outlast.events.signals import SCHEDULES
from outlast.store.outbox import Work
from outlast.store.repositories import pauses, tasks, turns
from outlast.store.repositories.pauses import Pause
from outlast.store.unit import Unit
from outlast.transitions.tasks import task_moves


def begin(unit: Unit, *, by: str) -> Pause:
    return pauses.begin(unit, by)


def end(unit: Unit) -> bool:
    """Submit again what was not started meanwhile. False when there was no pause."""
    if not pauses.end(unit):
        return False
    unit.signal(SCHEDULES)
    for row in turns.queued_and_admitted(unit.connection):
        unit.submit(Work(row.id, row.owner_id, row.agent, row.not_before))
    for work in task_moves.in_turn(tasks.queued(unit.connection)):
        unit.submit(work)
    return True
