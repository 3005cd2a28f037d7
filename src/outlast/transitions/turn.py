"""The life of a turn as transactions: start, claim, stop, end, and what starts after it.

Every function runs inside one transaction and under the session's lock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from outlast import ids
from outlast.clock import to_microseconds
from outlast.errors import Conflict, TooManyRequests
from outlast.events.event import Draft
from outlast.events.signals import end_topic, input_topic, turn_topic
from outlast.events.types import EventType
from outlast.ids import SessionId, TurnId, WorkerId
from outlast.store import tables
from outlast.store.locked_session import LockedSession
from outlast.store.outbox import Work
from outlast.store.repositories import events, inputs, messages, pauses, sessions, tasks, turns
from outlast.store.repositories.inputs import Input, InputKind
from outlast.store.repositories.turns import Disposition, Origin, TurnRow, TurnState
from outlast.store.unit import OwnerLock, Unit
from outlast.tool_hints import UNSET, Unset
from outlast.transitions import daily_limit, turn_failure
from outlast.transitions.due import due_at_start


@dataclass(frozen=True, slots=True)
class Fence:
    """The attempt a writer belongs to. Every write of a turn is refused once this is no longer it."""

    session_id: SessionId
    turn_id: TurnId
    attempt: int


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's right to run a turn."""

    fence: Fence
    turn: TurnRow
    agent: str
    owner_id: str
    waiting: Sequence[Input]
    """What waited in the inbox at that moment."""
    budget: timedelta | Unset | None = UNSET
    has_history: bool = True
    """Whether there were messages in the session at that moment."""


END_EVENT = {
    TurnState.COMPLETED: EventType.TURN_COMPLETED,
    TurnState.FAILED: EventType.TURN_FAILED,
    TurnState.STOPPED: EventType.TURN_STOPPED,
}


def start(
    unit: Unit,
    session: LockedSession,
    origin: Origin,
    *,
    not_before: datetime | None = None,
    may_wait: bool = False,
    is_sequel: bool = False,
    told: Mapping[str, Any] | None = None,
    model: str | Unset | None = UNSET,
    waiting: Sequence[Input] | None = None,
) -> TurnId:
    """Make the session's next turn: handed to the engine if its owner has room, else it waits for a place.

    At the owner's daily limit it is refused, or made to wait for the next day if it `may_wait`. `model`: in place of
    the session's. `waiting`: what waits in the inbox, if this transaction has seen it already.
    """
    closed_until = daily_limit.closed_until(unit, session.owner_id, unit.limits.daily_cost)
    if closed_until is not None and not may_wait:
        raise daily_limit.refusal(unit.now, closed_until)
    not_before = closed_until or not_before
    unit.lock_owner(session.owner_id, OwnerLock.ADMISSION)
    admitted, queued = turns.open_of_owner(unit.connection, session.owner_id)
    is_admitted = admitted < unit.limits.max_running_per_owner
    if not is_admitted and origin is Origin.USER and queued >= unit.limits.max_queued_per_owner:
        raise TooManyRequests(
            f"{queued} turns already wait for a place: wait until some have ended.",
            limit=unit.limits.max_queued_per_owner,
        )
    turn_id = ids.turn_id()
    data: dict[str, Any] = {"origin": origin.value, **(told or {})}
    if not is_admitted:
        data["place"] = queued + 1
    if closed_until is not None:
        data["until"] = closed_until.isoformat()
    # The more of an owner's turns have a place already, the later its next one is started.
    work = Work(turn_id, session.owner_id, session.agent, not_before, priority=-admitted, is_sequel=is_sequel)
    worker_id = unit.claimant(work) if is_admitted and not_before is None else None
    chosen: str | None = session.model if isinstance(model, Unset) else model
    if worker_id is not None:
        waiting = inputs.waiting_for(unit, session.id) if waiting is None else waiting
        chosen = _asked_model(waiting) or chosen
    number = unit.append(session.id, [Draft(EventType.TURN_QUEUED, data, turn_id)])
    row = turns.insert(
        unit,
        session,
        turn_id,
        origin=origin,
        is_admitted=is_admitted,
        first_event=number,
        model=chosen,
        not_before=not_before,
        worker_id=worker_id,
    )
    session.set(turn_id=turn_id, woken_turns=session.woken_turns + 1 if origin is Origin.WAKE else 0)
    if worker_id is not None:
        work.claim = _claimed(unit, session, row, waiting or ())
    if is_admitted:
        unit.submit(work)
    return turn_id


def start_if_waiting(unit: Unit, session: LockedSession, *, waiting: Sequence[Input] | None = None) -> TurnId | None:
    """Start the next turn for what waits, unless one is active, the session is held, or it only wakes itself."""
    if session.turn_id is not None or session.is_held:
        return None
    waiting = inputs.waiting_for(unit, session.id) if waiting is None else waiting
    due = due_at_start(waiting)
    if not due:
        return None
    is_woken = all(each.kind is InputKind.WAKE for each in due)
    if is_woken and session.woken_turns >= unit.limits.max_woken:
        hold(unit, session, "woken_too_often")
        unit.append(
            session.id,
            [
                Draft(
                    EventType.SESSION_FLAGGED,
                    {"reason": "woken_too_often", "woken_turns": session.woken_turns},
                )
            ],
        )
        return None
    if not is_woken:
        return start(unit, session, Origin.USER, may_wait=True, is_sequel=True, waiting=waiting)
    has_company = tasks.open_count(unit.reading(tables.tasks), session.id, waking_only=True) > 0
    not_before = unit.now + unit.limits.company if has_company else None
    return start(
        unit,
        session,
        Origin.WAKE,
        not_before=not_before,
        may_wait=True,
        is_sequel=True,
        waiting=waiting,
    )


def hurry(unit: Unit, session: LockedSession) -> None:
    """A turn that waits for company of its wake need not wait any longer, unless it waits for another day."""
    row = None if session.turn_id is None else turns.get(unit.connection, session.turn_id)
    if row is not None and row.state is TurnState.QUEUED and row.not_before is not None:
        if daily_limit.closed_until(unit, session.owner_id, unit.limits.daily_cost) is not None:
            return
        turns.set_now(unit, row.id, not_before=None)
        if row.is_admitted:
            unit.submit(Work(row.id, row.owner_id, row.agent))


def hold(unit: Unit, session: LockedSession, reason: str) -> None:
    if not session.is_held:
        session.set(is_held=True)
        unit.append(session.id, [Draft(EventType.SESSION_HELD, {"reason": reason})])


def release(unit: Unit, session: LockedSession) -> None:
    if session.is_held:
        session.set(is_held=False)
        unit.append(session.id, [Draft(EventType.SESSION_RESUMED, {})])


def resume(unit: Unit, session_id: SessionId, *, owner_id: str) -> TurnId | None:
    """End the hold; what waited starts a turn."""
    session = unit.lock(session_id, owner_id=owner_id)
    daily_limit.check(unit, owner_id, unit.limits.daily_cost)
    session.set(woken_turns=0)
    release(unit, session)
    return session.turn_id or start_if_waiting(unit, session)


def retry(unit: Unit, session_id: SessionId, *, owner_id: str) -> TurnId:
    """Go on from the last committed message after a failed or stopped turn."""
    session = unit.lock(session_id, owner_id=owner_id)
    if session.turn_id is not None:
        raise Conflict("A turn is running: there is nothing to retry.")
    last = turns.last_of(unit.connection, session_id)
    if last is None or last.state not in (TurnState.FAILED, TurnState.STOPPED):
        raise Conflict("The last turn did not fail: send a message instead.")
    release(unit, session)
    return start(unit, session, Origin.RETRY, model=last.model)


def request_stop(unit: Unit, session_id: SessionId, *, owner_id: str) -> TurnId | None:
    """Ask the active turn to stop and hold the session. A turn that has not begun is stopped here and now.

    Without a turn the session is held if background work is open: its end would start one.
    """
    session = unit.lock(session_id, owner_id=owner_id)
    turn_id: TurnId | None = session.turn_id
    if turn_id is None:
        if tasks.open_count(unit.reading(tables.tasks), session_id) > 0:
            hold(unit, session, "stopped")
        return None
    hold(unit, session, "stopped")
    row = _as_it_stays(unit, session, turn_id)
    assert row is not None
    if row.state is TurnState.QUEUED and row.attempt == 0:
        why = {"stop_reason": "user"}
        turns.move(unit, turn_id, why, source=TurnState.QUEUED, target=TurnState.STOPPED, attempt=0)
        _ended(unit, session, row, TurnState.STOPPED, {"reason": "user", "usage": row.usage})
    else:
        turns.request_stop(unit, turn_id, "user")
        unit.signal(turn_topic(turn_id))
    return turn_id


def _as_it_stays(unit: Unit, session: LockedSession, turn_id: TurnId) -> TurnRow | None:
    """A turn that waits may be given a place by the end of another one in this moment: not while it is ended."""
    row = turns.get(unit.connection, turn_id)
    if unit.is_serial or row is None or row.state is not TurnState.QUEUED:
        return row
    unit.lock_owner(session.owner_id, OwnerLock.ADMISSION)
    return turns.get(unit.connection, turn_id)


def abort(unit: Unit, session: LockedSession) -> None:
    """End the active turn because its session is deleted: nothing comes after it, and whoever runs it must stop."""
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
    if row.attempt == 0 and _waits_for_tomorrow(unit, row):
        return None
    session = unit.lock(row.session_id)
    waiting = inputs.waiting_for(unit, session.id)
    attempt = row.attempt + 1
    model = (_asked_model(waiting) if attempt == 1 else None) or row.model
    moved = turns.move(
        unit,
        turn_id,
        {"attempt": attempt, "worker_id": worker_id, "started_at": unit.now_us, "model": model},
        source=TurnState.QUEUED,
        target=TurnState.RUNNING,
        attempt=row.attempt,
    )
    if moved is not Disposition.MOVED:
        return None
    row = replace(row, state=TurnState.RUNNING, attempt=attempt, worker_id=worker_id, model=model)
    return _claimed(unit, session, row, waiting)


def _claimed(unit: Unit, session: LockedSession, row: TurnRow, waiting: Sequence[Input]) -> Claim:
    """Tell that the turn begins, or goes on without what an earlier attempt said and did not keep."""
    data: dict[str, Any] = {"attempt": row.attempt, "worker_id": row.worker_id}
    if row.attempt == 1:
        data["model"] = row.model
        unit.append(session.id, [Draft(EventType.TURN_STARTED, data, row.id)])
    else:
        last = messages.last(unit.connection, session.id)
        after = max(row.first_event, last.event if last is not None else 0)
        data["dropped"] = events.drop_parts(unit, session.id, row.id, after=after)
        unit.append(session.id, [Draft(EventType.TURN_RESUMED, data, row.id)])
    fence = Fence(session.id, row.id, row.attempt)
    budget = sessions.budget_of(session.budget_seconds)
    return Claim(fence, row, session.agent, session.owner_id, waiting, budget, has_history=session.last_message > 0)


def _waits_for_tomorrow(unit: Unit, row: TurnRow) -> bool:
    """The limit may have been reached since the turn was made. One that has begun goes on to its end."""
    closed_until = daily_limit.closed_until(unit, row.owner_id, unit.limits.daily_cost)
    if closed_until is None:
        return False
    turns.set_values(unit, row.id, not_before=to_microseconds(closed_until))
    unit.submit(Work(row.id, row.owner_id, row.agent, closed_until))
    return True


def _asked_model(waiting: Sequence[Input]) -> str | None:
    """The model that the messages ask for with which a turn begins; it stays the turn's model to its end."""
    return next((each.body["model"] for each in due_at_start(waiting) if each.body.get("model")), None)


def requeue(unit: Unit, row: TurnRow, *, has_crashed: bool) -> Disposition:
    """Give a running turn back so that another attempt can claim it.

    After `max_claims` crashes the next attempt only brings it to its end. If that is too much for a process as well,
    it ends here, without a look at what it is about.
    """
    session = unit.lock(row.session_id)
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
        hold(unit, session, "crash_loop")
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
    start_if_waiting(unit, session, waiting=waiting)
    if row.is_admitted:
        _admit_next(unit, row.owner_id)


def _admit_next(unit: Unit, owner_id: str) -> None:
    """A place became free: hand the owner's next waiting turns to the engine, while there is room."""
    unit.lock_owner(owner_id, OwnerLock.ADMISSION)
    while True:
        admitted, waiting = turns.open_of_owner(unit.connection, owner_id)
        if waiting == 0 or admitted >= unit.limits.max_running_per_owner:
            return
        row = turns.next_to_admit(unit.connection, owner_id)
        if row is None:
            continue  # it was stopped in this moment; there may be another
        turns.set_values(unit, row.id, admitted_at=unit.now_us)
        if not _waits_for_tomorrow(unit, row):
            # As when it starts with a place: it must not pass those that were given theirs before it.
            unit.submit(Work(row.id, owner_id, row.agent, row.not_before, priority=-admitted))


def deliver(unit: Unit, fence: Fence, due: Sequence[Input], message: int) -> None:
    """Mark inputs delivered in the transaction that commits the request they stand in."""
    inputs.mark_delivered(unit, [each.id for each in due], fence.turn_id, message)
    for each in due:
        unit.signal(input_topic(each.id))
    unit.append(
        fence.session_id,
        [Draft(EventType.INPUT_DELIVERED, _delivered(each, message), fence.turn_id, each.task_id) for each in due],
    )


def _delivered(given: Input, message: int) -> dict[str, Any]:
    """With the key that a person's client gave it: that client knows its own message by it."""
    data = {"input_id": given.id, "kind": given.kind, "text": given.text[:2_000], "message": message}
    if given.kind is InputKind.MESSAGE and given.idempotency_key is not None:
        data["key"] = given.idempotency_key
    return data
