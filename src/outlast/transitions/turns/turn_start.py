"""How a turn begins: made if its session may have one, given a place, handed to the engine or claimed at once.

Every function runs inside one transaction and under the session's lock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from outlast import ids
from outlast.clock import to_microseconds
from outlast.errors import TooManyRequests
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.ids import SessionId, TurnId
from outlast.store import tables
from outlast.store.locked_session import LockedSession
from outlast.store.outbox import Work
from outlast.store.repositories import events, inputs, messages, sessions, tasks, turns
from outlast.store.repositories.inputs import ASSIGNED_BY, Input, InputKind
from outlast.store.repositories.turns import Origin, TurnRow, TurnState
from outlast.store.unit import OwnerLock, Unit
from outlast.tool_hints import UNSET, Unset
from outlast.transitions.turns import daily_limit
from outlast.transitions.turns.due import due_at_start

_WAKING = (InputKind.WAKE, InputKind.REQUEST)
_UNASKED = (*_WAKING, InputKind.SCHEDULE)
"""Kinds of input that no person sends."""


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
        chosen = asked_model(waiting) or chosen
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
    session.set(turn_id=turn_id, woken_turns=_woken(session, origin))
    if worker_id is not None:
        work.claim = claimed(unit, session, row, waiting or ())
    if is_admitted:
        unit.submit(work)
    return turn_id


def _woken(session: LockedSession, origin: Origin) -> int:
    """Turns in a row that only wakes started. What a schedule starts neither counts nor ends the row."""
    if origin is Origin.SCHEDULE:
        return session.woken_turns
    return session.woken_turns + 1 if origin is Origin.WAKE else 0


def start_if_waiting(unit: Unit, session: LockedSession, *, waiting: Sequence[Input] | None = None) -> TurnId | None:
    """Start the next turn for what waits, unless one is active, the session is held, or it only wakes itself."""
    if session.turn_id is not None or session.is_held:
        return None
    waiting = inputs.waiting_for(unit, session.id) if waiting is None else waiting
    due = due_at_start(waiting)
    if not due:
        return None
    is_woken = all(each.kind in _WAKING for each in due)
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
    if not is_woken and all(each.kind in _UNASKED for each in due):
        return start(unit, session, Origin.SCHEDULE, may_wait=True, waiting=waiting)
    if not is_woken:
        said = [each for each in due if each.kind is InputKind.MESSAGE]
        is_assigned = bool(said) and all(ASSIGNED_BY in each.body for each in said)
        origin = Origin.PARENT if is_assigned else Origin.USER
        return start(unit, session, origin, may_wait=True, is_sequel=True, waiting=waiting)
    is_end = all(each.kind is InputKind.WAKE for each in due)  # what asks does not wait for company
    has_company = is_end and tasks.open_count(unit.reading(tables.tasks), session.id, waking_only=True) > 0
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


def claimed(unit: Unit, session: LockedSession, row: TurnRow, waiting: Sequence[Input]) -> Claim:
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


def waits_for_tomorrow(unit: Unit, row: TurnRow) -> bool:
    """The limit may have been reached since the turn was made. One that has begun goes on to its end."""
    closed_until = daily_limit.closed_until(unit, row.owner_id, unit.limits.daily_cost)
    if closed_until is None:
        return False
    turns.set_values(unit, row.id, not_before=to_microseconds(closed_until))
    unit.submit(Work(row.id, row.owner_id, row.agent, closed_until))
    return True


def asked_model(waiting: Sequence[Input]) -> str | None:
    """The model that the messages ask for with which a turn begins; it stays the turn's model to its end."""
    return next((each.body["model"] for each in due_at_start(waiting) if each.body.get("model")), None)


def admit_next(unit: Unit, owner_id: str) -> None:
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
        if not waits_for_tomorrow(unit, row):
            # As when it starts with a place: it must not pass those that were given theirs before it.
            unit.submit(Work(row.id, owner_id, row.agent, row.not_before, priority=-admitted))
