"""A schedule fires: its next time, its input or task and a row of its history in one transaction.

Whoever sees that it is due may try: only the one for whom it is still due as it was seen decides about that time.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from outlast.errors import Conflict, Forbidden, TooManyTasks
from outlast.events.signals import SCHEDULES
from outlast.ids import ScheduleId
from outlast.store.repositories import fires, pauses, schedules
from outlast.store.repositories.fires import FireOutcome, How
from outlast.store.repositories.schedules import Missed, Overlap, Schedule, ScheduleKind, ScheduleState
from outlast.store.unit import Unit
from outlast.timing import cron as crons
from outlast.timing.cron import Passed
from outlast.transitions.schedules import changes
from outlast.transitions.schedules.fire_record import FireRecord

GRACE = timedelta(seconds=30)
"""A time is missed when nothing fired for so long; until then it is only late."""
MOST_AT_ONCE = 100
"""Of the times that were missed, so many are made up for, the latest ones."""
MOST_QUEUED = 100


def fire_due(unit: Unit, seen: Schedule, *, orphan: str | None = None) -> bool:
    """Decide about the times that have come. False: somebody holds its session, or the server is paused; look again.

    `orphan`: why it cannot do what it was made for; it is paused and says so.
    """
    unit.lock_free([seen.session_id])
    if not unit.has_locked(seen.session_id) or unit.once(pauses.find) is not None:
        return False
    row = schedules.get(unit.connection, seen.id)
    if row is None or row.due_at is None or row.due_at != seen.due_at or row.due_at > unit.now:
        return True
    orphan = changes.ARCHIVED if unit.lock(row.session_id).is_archived else orphan
    if orphan is not None:
        changes.paused(unit, row, orphan)
        return True
    passed = _passed(row, row.due_at, unit.now)
    next_at = next(crons.after(row.cron, row.zone, unit.now), None) if row.cron is not None else None
    values = {"due_at": next_at} if next_at is not None else {"due_at": None, **_ENDED}
    if not schedules.change(unit, row, **values):
        return True
    record = FireRecord(unit, row, next_at)
    _decide(unit, record, row, passed)
    record.close(is_ended=next_at is None)
    unit.signal(SCHEDULES)
    return True


_ENDED = {"state": ScheduleState.ENDED.value, "reason": "done"}


def _passed(row: Schedule, first: datetime, now: datetime) -> Passed:
    if row.cron is None:
        return Passed([first])
    return crons.passed(row.cron, row.zone, first, now, most=MOST_AT_ONCE)


def _decide(unit: Unit, record: FireRecord, row: Schedule, passed: Passed) -> None:
    *before, latest = passed.instants
    is_late = unit.now - latest > GRACE
    runs: Sequence[datetime] = [latest]
    if row.missed is Missed.RUN_ALL:
        runs, before = passed.instants, []
    elif row.missed is Missed.SKIP and is_late:
        runs, before = [], list(passed.instants)
    left = len(before) + passed.earlier
    if left or passed.is_more:
        record.missed(before[0] if before else row.due_at or latest, left, is_more=passed.is_more)
    for due_at in runs:
        _fire(unit, record, row, due_at, missed=left)


def _fire(unit: Unit, record: FireRecord, row: Schedule, due_at: datetime, *, missed: int) -> None:
    """As its overlap policy says."""
    still_open = fires.still_open(unit.connection, row.id)
    waiting = [each for each in still_open if each.input_id is not None and each.outcome is FireOutcome.FIRED]
    queued = fires.queued(unit.connection, row.id)
    if row.overlap is Overlap.QUEUE and (still_open or queued):
        if len(queued) >= MOST_QUEUED:
            record.skipped(due_at, "queue_full", f"{len(queued)} fires already wait for their turn.")
        else:
            record.queued(due_at)
    elif still_open and row.overlap is Overlap.SKIP:
        record.skipped(due_at, "overlap", f"Fire {still_open[0].number} is not over yet.")
    elif waiting:
        record.skipped(due_at, "input_waits", f"The input of fire {waiting[0].number} still waits.")
    else:
        _make(record, row, due_at, missed=missed)


def _make(record: FireRecord, row: Schedule, due_at: datetime, *, missed: int = 0) -> None:
    try:
        record.fire(due_at, how=How.DUE, missed=missed)
    except Forbidden as exc:
        record.failed(due_at, "forbidden", exc.message)
    except TooManyTasks as exc:
        if row.missed is Missed.RUN_ALL or row.overlap is Overlap.QUEUE:
            record.queued(due_at)
        else:
            record.failed(due_at, "too_many_tasks", exc.message)


def fire_queued(unit: Unit, seen: Schedule) -> None:
    """The oldest fire that waits, if what an earlier one began is over and there is room."""
    unit.lock_free([seen.session_id])
    if not unit.has_locked(seen.session_id) or unit.once(pauses.find) is not None:
        return
    row = schedules.get(unit.connection, seen.id)
    if row is None or row.state is ScheduleState.PAUSED:
        return
    queued = fires.queued(unit.connection, row.id)
    still_open = fires.still_open(unit.connection, row.id)
    if row.overlap is Overlap.ALLOW:
        still_open = [each for each in still_open if each.input_id is not None and each.outcome is FireOutcome.FIRED]
    if not queued or still_open:
        return
    record = FireRecord(unit, row, row.next_at)
    try:
        record.fire_queued(queued[0])
    except Forbidden as exc:
        record.give_up(queued[0], "forbidden", exc.message)
    except TooManyTasks:
        return
    record.close(is_ended=False)


def trigger(unit: Unit, schedule_id: ScheduleId, *, owner_id: str) -> Schedule:
    """Fire once now, whatever its times and policies are, also while it is paused. They stay as they are."""
    row = changes.found(unit, schedule_id, owner_id=owner_id)
    if row.state is ScheduleState.ENDED:
        raise Conflict("The schedule has ended: make a new one.", state=row.state)
    waiting = [
        each
        for each in fires.still_open(unit.connection, row.id)
        if each.input_id is not None and each.outcome is FireOutcome.FIRED
    ]
    if waiting and row.kind is ScheduleKind.MESSAGE:
        raise Conflict(
            f"The input of fire {waiting[0].number} still waits in the session: a schedule has one at most.",
            input_id=waiting[0].input_id,
        )
    record = FireRecord(unit, row, row.next_at)
    record.fire(unit.now, how=How.TRIGGERED)
    record.close(is_ended=False)
    again = schedules.get(unit.connection, row.id)
    assert again is not None
    return again
