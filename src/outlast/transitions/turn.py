"""The life of a turn as transactions: start, claim, stop, end, and what starts after it.

Every function runs inside one transaction and under the session's lock.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from outlast.clock import to_microseconds
from outlast.errors import Conflict
from outlast.events.event import Draft
from outlast.events.signals import SCHEDULES, end_topic, input_topic, turn_topic
from outlast.events.types import EventType
from outlast.ids import SessionId, TurnId, WorkerId
from outlast.store import tables
from outlast.store.locked_session import LockedSession
from outlast.store.outbox import Work
from outlast.store.repositories import inputs, pauses, tasks, turns
from outlast.store.repositories.inputs import Input
from outlast.store.repositories.turns import Disposition, Origin, TurnRow, TurnState
from outlast.store.unit import OwnerLock, Unit
from outlast.transitions import sub_sessions
from outlast.transitions.turns import daily_limit, inbox, turn_failure, turn_start
from outlast.transitions.turns.turn_start import Claim, Fence

END_EVENT = {
    TurnState.COMPLETED: EventType.TURN_COMPLETED,
    TurnState.FAILED: EventType.TURN_FAILED,
    TurnState.STOPPED: EventType.TURN_STOPPED,
}


def resume(unit: Unit, session_id: SessionId, *, owner_id: str) -> TurnId | None:
    """End the hold; what waited starts a turn."""
    session = unit.lock(session_id, owner_id=owner_id)
    daily_limit.check(unit, owner_id, unit.limits.daily_cost)
    session.set(woken_turns=0)
    turn_start.release(unit, session)
    return session.turn_id or turn_start.start_if_waiting(unit, session)


def retry(unit: Unit, session_id: SessionId, *, owner_id: str) -> TurnId:
    """Go on from the last committed message after a failed or stopped turn."""
    session = unit.lock(session_id, owner_id=owner_id)
    if session.turn_id is not None:
        raise Conflict("A turn is running: there is nothing to retry.")
    last = turns.last_of(unit.connection, session_id)
    if last is None or last.state not in (TurnState.FAILED, TurnState.STOPPED):
        raise Conflict("The last turn did not fail: send a message instead.")
    turn_start.release(unit, session)
    return turn_start.start(unit, session, Origin.RETRY, model=last.model)


def request_stop(unit: Unit, session_id: SessionId, *, owner_id: str, by: str | None = None) -> TurnId | None:
    """Ask the active turn to stop and hold the session. A turn that has not begun is stopped here and now.

    Without a turn the session is held if background work is open: its end would start one. `by` says who asks for
    it, else the owner does.
    """
    session = unit.lock(session_id, owner_id=owner_id)
    sub_sessions.lock_parent(unit, session)
    turn_id: TurnId | None = session.turn_id
    if turn_id is None:
        if tasks.open_count(unit.reading(tables.tasks), session_id) > 0:
            turn_start.hold(unit, session, "stopped")
        sub_sessions.stopped(unit, session, by=by or owner_id)
        return None
    turn_start.hold(unit, session, "stopped")
    sub_sessions.stopped(unit, session, by=by or owner_id)
    stop(unit, session, turn_id, "user")
    return turn_id


def stop(unit: Unit, session: LockedSession, turn_id: TurnId, reason: str) -> None:
    """Ask the active turn of a session to stop; one that has not begun is stopped here and now."""
    row = _as_it_stays(unit, session, turn_id)
    assert row is not None
    if row.state is TurnState.QUEUED and row.attempt == 0:
        why = {"stop_reason": reason}
        turns.move(unit, turn_id, why, source=TurnState.QUEUED, target=TurnState.STOPPED, attempt=0)
        _ended(unit, session, row, TurnState.STOPPED, {"reason": reason, "usage": row.usage})
    else:
        turns.request_stop(unit, turn_id, reason)
        unit.signal(turn_topic(turn_id))


def _as_it_stays(unit: Unit, session: LockedSession, turn_id: TurnId) -> TurnRow | None:
    """A turn that waits may be given a place by the end of another one in this moment: not while it is ended."""
    row = turns.get(unit.connection, turn_id)
    if unit.is_serial or row is None or row.state is not TurnState.QUEUED:
        return row
    unit.lock_owner(session.owner_id, OwnerLock.ADMISSION)
    return turns.get(unit.connection, turn_id)


def abort(unit: Unit, session: LockedSession) -> None:
    """End the active turn because its session is deleted: nothing comes after it, and whoever runs it must stop."""
    sub_sessions.lock_parent(unit, session)
    row = None if session.turn_id is None else _as_it_stays(unit, session, session.turn_id)
    session.set(is_held=True)
    if row is not None:
        why = {"stop_reason": "deleted"}
        turns.move(unit, row.id, why, source=row.state, target=TurnState.STOPPED, attempt=row.attempt)
        _ended(unit, session, row, TurnState.STOPPED, {"reason": "deleted", "usage": row.usage})
        unit.signal(turn_topic(row.id))


def claim(unit: Unit, turn_id: TurnId, worker_id: WorkerId) -> Claim | None:
    """Take a queued turn. None when it is not there to take: another worker has it, it was stopped, or must wait."""
    row = turns.get(unit.connection, turn_id)
    if row is not None and not unit.has_locked(row.session_id):
        row = turns.get(unit.connection, turn_id) if unit.try_lock(row.session_id) else None
    if row is None or row.state is not TurnState.QUEUED or pauses.find(unit.connection) is not None:
        return None
    if row.attempt == 0 and turn_start.waits_for_tomorrow(unit, row):
        return None
    session = unit.lock(row.session_id)
    waiting = inputs.waiting_for(unit, session.id)
    attempt = row.attempt + 1
    model = (turn_start.asked_model(waiting) if attempt == 1 else None) or row.model
    moved = turns.move(
        unit,
        turn_id,
        {
            "attempt": attempt,
            "worker_id": worker_id,
            "started_at": to_microseconds(row.started_at or unit.now),
            "model": model,
            "is_waiting": False,
        },
        source=TurnState.QUEUED,
        target=TurnState.RUNNING,
        attempt=row.attempt,
    )
    if moved is not Disposition.MOVED:
        return None
    begun = {"state": TurnState.RUNNING, "attempt": attempt, "started_at": row.started_at or unit.now}
    row = replace(row, **begun, worker_id=worker_id, model=model)
    return turn_start.claimed(unit, session, row, waiting)


def requeue(unit: Unit, row: TurnRow, *, has_crashed: bool) -> Disposition:
    """Give a running turn back so that another attempt can claim it.

    After `max_claims` crashes the next attempt only brings it to its end. If that is too much for a process as well,
    it ends here, without a look at what it is about.
    """
    session = unit.lock(row.session_id)
    sub_sessions.lock_parent(unit, session)
    crashes = row.crashes + has_crashed
    if crashes > unit.limits.max_claims:
        return _give_up(unit, session, row, crashes)
    moved = turns.move(
        unit,
        row.id,
        {"worker_id": None, "crashes": crashes},
        source=TurnState.RUNNING,
        target=TurnState.QUEUED,
        attempt=row.attempt,
    )
    if moved is Disposition.MOVED:
        unit.submit(Work(row.id, session.owner_id, session.agent))
        unit.signal(turn_topic(row.id))
    return moved


def _give_up(unit: Unit, session: LockedSession, row: TurnRow, crashes: int) -> Disposition:
    """What it began with may not have been delivered: held, or that would start the next turn."""
    data = {**turn_failure.crash_loop(crashes).data, "usage": row.usage}
    values = {"crashes": crashes, "error": turns.encode(data)}
    moved = turns.move(unit, row.id, values, source=row.state, target=TurnState.FAILED, attempt=row.attempt)
    if moved is Disposition.MOVED:
        turn_start.hold(unit, session, "crash_loop")
        _ended(unit, session, row, TurnState.FAILED, data)
        unit.signal(turn_topic(row.id))
    return moved


def give_back(unit: Unit, fence: Fence, *, has_crashed: bool) -> bool:
    """Leave a turn whose attempt is over to the next one. False: it is not this attempt's any more."""
    row = turns.get(unit.connection, fence.turn_id) if unit.try_lock(fence.session_id) else None
    if row is None or row.attempt != fence.attempt or row.state is not TurnState.RUNNING:
        return False
    return requeue(unit, row, has_crashed=has_crashed) is Disposition.MOVED


def end(
    unit: Unit,
    claim: Claim,
    target: TurnState,
    data: dict[str, Any],
    *,
    values: dict[str, Any],
    waiting: Sequence[Input] | None = None,
) -> Disposition:
    """End a running turn: state, `values` of its row, terminal event, session and what comes next in one commit.

    `waiting`: what waits in the inbox, if this transaction has seen it already.
    """
    fence = claim.fence
    session = unit.lock(fence.session_id)
    sub_sessions.lock_parent(unit, session)
    error = turns.encode(data) if target is TurnState.FAILED else None
    values = {**values, "error": error}
    moved = turns.move(unit, fence.turn_id, values, source=TurnState.RUNNING, target=target, attempt=fence.attempt)
    if moved is Disposition.MOVED:
        _ended(unit, session, claim.turn, target, data, waiting=waiting)
    return moved


def _ended(
    unit: Unit,
    session: LockedSession,
    row: TurnRow,
    target: TurnState,
    data: dict[str, Any],
    *,
    waiting: Sequence[Input] | None = None,
) -> None:
    number = unit.append(session.id, [Draft(END_EVENT[target], data, row.id)])
    unit.signal(end_topic(row.id))
    session.set(turn_id=None, answered_event=number)
    sub_sessions.work_changed(unit, session)
    if row.origin is Origin.SCHEDULE:
        unit.signal(SCHEDULES)
    turn_start.start_if_waiting(unit, session, waiting=waiting)
    if row.is_admitted:
        turn_start.admit_next(unit, row.owner_id)


def deliver(unit: Unit, fence: Fence, due: Sequence[Input], message: int) -> None:
    """Mark inputs delivered in the transaction that commits the request they stand in."""
    inputs.mark_delivered(unit, [each.id for each in due], fence.turn_id, message)
    for each in due:
        unit.signal(input_topic(each.id))
    unit.append(
        fence.session_id,
        [
            Draft(EventType.INPUT_DELIVERED, inbox.told_of(each) | {"message": message}, fence.turn_id, each.task_id)
            for each in due
        ],
    )
