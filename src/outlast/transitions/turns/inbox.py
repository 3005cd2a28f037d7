"""The inbox: accepting inputs, and editing and removing those that wait."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from outlast import ids
from outlast.clock import to_microseconds
from outlast.errors import (
    Conflict,
    IdempotencyMismatch,
    InboxFull,
    InvalidInput,
    NotFound,
    SessionBusy,
    TooManyRequests,
)
from outlast.events.event import Draft, Event
from outlast.events.signals import input_topic, turn_topic
from outlast.events.types import EventType
from outlast.ids import InputId, SessionId, TaskId, TurnId
from outlast.store.locked_session import LockedSession
from outlast.store.repositories import inputs, messages, searched, turns
from outlast.store.repositories.inputs import Input, InputKind, InputState, Mode
from outlast.store.repositories.turns import Origin, TurnState
from outlast.store.unit import OwnerLock, Unit
from outlast.transitions.sessions import preview
from outlast.transitions.turns import daily_limit, turn_start
from outlast.values.check import check_characters

_SENT = "sent"
"""In the body of a message that was edited: its text as it came."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """An input is kept. `place` counts from 1 among the messages that wait; None when a turn starts with it.

    `told` is what its commit wrote to the session's log, after the position `after`: whole when that is made. Of a
    repeat, `after` is where the turn begins that delivered it.
    """

    input: Input
    turn_id: TurnId | None
    place: int | None
    after: int
    told: Sequence[Event] = ()
    is_repeat: bool = False


def accept(
    unit: Unit,
    session_id: SessionId,
    text: str,
    *,
    owner_id: str,
    mode: Mode = Mode.STEER,
    body: dict[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> Accepted:
    """Keep a person's message; start a turn if the session is idle. Ends a hold.

    At the owner's daily limit it is refused, also while a turn runs: that one goes on without it.
    """
    session = unit.lock(session_id, owner_id=owner_id)
    after = session.last_event
    if idempotency_key is not None:
        known = inputs.by_key(unit.connection, session_id, idempotency_key)
        if known is not None:
            _check_repeat(known, text, body or {})
            return Accepted(known, known.turn_id, None, _told_after(unit, known, after), is_repeat=True)
    check_text(text, unit.limits.max_text)
    active: TurnId | None = session.turn_id
    place = None if active is None else _place_if_busy(unit, session, mode)
    if active is not None:
        daily_limit.check(unit, owner_id, unit.limits.daily_cost)
    accepted = inputs.insert(
        unit,
        session,
        ids.input_id(),
        kind=InputKind.MESSAGE,
        mode=Mode.STEER if mode is Mode.REJECT else mode,
        text=text,
        body=body or {},
        idempotency_key=idempotency_key,
        was_busy=active is not None,
    )
    _log(unit, session, EventType.INPUT_ACCEPTED, replace(accepted, place=place))
    session.set(woken_turns=0)
    if session.preview is None:
        session.set(preview=preview.of_text(accepted.text))
    turn_start.release(unit, session)
    told = unit.committed.events
    if active is None:
        started = turn_start.start(unit, session, Origin.USER)
        return Accepted(accepted, started, None, after, told)
    turn_start.hurry(unit, session)
    if mode is Mode.INTERRUPT:
        _interrupt(unit, active)
    unit.signal(turn_topic(active))
    return Accepted(accepted, None, place, after, told)


def _told_after(unit: Unit, known: Input, last: int) -> int:
    """Where a log begins that tells what became of an input: its turn's begin, or now if it still waits."""
    turn = None if known.turn_id is None else turns.get(unit.connection, known.turn_id)
    return last if turn is None else turn.first_event - 1


def notify(
    unit: Unit,
    session_id: SessionId,
    kind: InputKind,
    text: str,
    *,
    body: dict[str, Any] | None = None,
    task_id: TaskId | None = None,
    idempotency_key: str | None = None,
    mode: Mode = Mode.STEER,
    state: InputState = InputState.WAITING,
) -> Input:
    """Keep something the runtime says (a wake, a settlement, a schedule); it starts a turn unless one is held back."""
    session = unit.lock(session_id)
    active: TurnId | None = session.turn_id
    # Asked before it is written: it goes with whatever else is written later.
    waiting = inputs.waiting_for(unit, session_id) if active is None else []
    kept = inputs.insert(
        unit,
        session,
        ids.input_id(),
        kind=kind,
        mode=mode,
        text=text,
        body=body or {},
        task_id=task_id,
        idempotency_key=idempotency_key,
        state=state,
        was_busy=False,
    )
    _log(unit, session, EventType.INPUT_ACCEPTED, kept)
    if active is not None:
        unit.signal(turn_topic(active))
    else:
        waiting += [kept] if kept.state is InputState.WAITING else []
        turn_start.start_if_waiting(unit, session, waiting=waiting)
    return kept


def assign(unit: Unit, session: LockedSession, text: str, task_id: TaskId) -> Input:
    """Keep what a parent asks of this session: it waits for its turn, and does not end a hold.

    Not among the messages of people: how many there are is bounded by the parent's tasks.
    """
    check_text(text, unit.limits.max_text)
    active = session.turn_id
    waiting = inputs.waiting_for(unit, session.id) if active is None else []
    kept = inputs.insert(
        unit,
        session,
        ids.input_id(),
        kind=InputKind.MESSAGE,
        mode=Mode.QUEUE,
        text=text,
        body={inputs.ASSIGNED_BY: task_id},
        was_busy=False,
    )
    _log(unit, session, EventType.INPUT_ACCEPTED, kept)
    if session.preview is None:
        session.set(preview=preview.of_text(kept.text))
    if active is None:
        turn_start.start_if_waiting(unit, session, waiting=[*waiting, kept])
    return kept


def edit(unit: Unit, session_id: SessionId, input_id: InputId, text: str, *, owner_id: str) -> Input:
    session, found = _waiting(unit, session_id, input_id, owner_id)
    check_text(text, unit.limits.max_text)
    is_first = _is_first(unit, session, found)
    inputs.change_text(unit, input_id, text, body={_SENT: found.text, **found.body})
    searched.change(unit, session_id, input_id, text, owner_id=owner_id)
    if is_first:
        session.set(preview=preview.of_text(text))
    unit.append(session_id, [Draft(EventType.INPUT_EDITED, {"input_id": input_id, "text": text})])
    return inputs.get_placed(unit.connection, session.id, input_id) or found


def remove(unit: Unit, session_id: SessionId, input_id: InputId, *, owner_id: str) -> None:
    drop(unit, *_waiting(unit, session_id, input_id, owner_id))


def drop(unit: Unit, session: LockedSession, waiting: Input) -> None:
    """Take back what was not delivered yet."""
    is_first = _is_first(unit, session, waiting)
    inputs.mark_removed(unit, waiting.id)
    searched.forget(unit, session.id, waiting.id)
    if is_first:
        following = inputs.first_message(unit, session.id)
        session.set(preview=None if following is None else preview.of_text(following.text))
    unit.signal(input_topic(waiting.id))
    unit.append(session.id, [Draft(EventType.INPUT_REMOVED, {"input_id": waiting.id})])


def _is_first(unit: Unit, session: LockedSession, given: Input) -> bool:
    """Whether the session is known by how this message begins: not one that goes on with what was said elsewhere."""
    first = inputs.first_message(unit, session.id)
    return first is not None and first.id == given.id and not messages.begins_with_copies(unit, session.id)


def check_text(text: str, most: int) -> None:
    if not text.strip():
        raise InvalidInput("The message is empty: send some text.")
    if len(text) > most:
        raise InvalidInput(f"The message has {len(text)} characters; at most {most} are taken. Shorten or split it.")
    check_characters(text, "message")


def _check_repeat(known: Input, text: str, body: Mapping[str, Any]) -> None:
    """Under a key that was used before only the same may come: anything else would be answered and not kept."""
    is_said = text in (known.text, known.body.get(_SENT))
    has_more = body.get("files") not in (None, known.body.get("files"))
    if known.kind is not InputKind.MESSAGE or not is_said or has_more:
        raise IdempotencyMismatch(
            "This idempotency key was used for another message: use a new one.", key=known.idempotency_key
        )


def _waiting(unit: Unit, session_id: SessionId, input_id: InputId, owner_id: str) -> tuple[LockedSession, Input]:
    session = unit.lock(session_id, owner_id=owner_id)
    found = inputs.get(unit.connection, session_id, input_id)
    if found is None or found.kind is not InputKind.MESSAGE:
        raise NotFound("There is no such input.", id=input_id)
    if found.state is not InputState.WAITING:
        raise Conflict(f"The message was already {found.state.value}: it can no longer be changed.", state=found.state)
    return session, found


def _place_if_busy(unit: Unit, session: LockedSession, mode: Mode) -> int:
    """Its place among the messages that wait; refused if it cannot wait."""
    if mode is Mode.REJECT:
        raise SessionBusy("A turn is running: wait for its end, or send with when_busy='steer' or 'queue'.")
    said = [each for each in inputs.waiting_for(unit, session.id) if each.kind is InputKind.MESSAGE]
    if len(said) >= unit.limits.max_inbox:
        raise InboxFull(
            f"{len(said)} messages already wait in this session: wait until one is delivered, or remove one.",
            limit=unit.limits.max_inbox,
        )
    unit.lock_owner(session.owner_id, OwnerLock.ADMISSION)  # or two sessions at once would each see room for one more
    since = to_microseconds(unit.now - timedelta(minutes=1))
    if inputs.busy_messages_since(unit.connection, session.owner_id, since) >= unit.limits.max_busy_per_minute:
        raise TooManyRequests(
            f"More than {unit.limits.max_busy_per_minute} messages to busy sessions within a minute: wait a little.",
            retry_after=60,
        )
    return len(said) + 1


def _interrupt(unit: Unit, turn_id: TurnId) -> None:
    row = turns.get(unit.connection, turn_id)
    if row is not None and (row.state is TurnState.RUNNING or row.attempt > 0):
        turns.request_stop(unit, turn_id, "interrupt")


def _log(unit: Unit, session: LockedSession, type_: EventType, kept: Input) -> None:
    unit.append(session.id, [Draft(type_, told_of(kept), task_id=kept.task_id)])


def withdraw_wakes(unit: Unit, session_id: SessionId, task_ids: Sequence[TaskId]) -> None:
    """What the model was told by another way is not told again."""
    told: dict[str, Any] = {"reason": InputState.WITHDRAWN.value}
    gone = inputs.withdraw_wakes(unit, session_id, task_ids)
    if gone:
        unit.append(session_id, [Draft(EventType.INPUT_REMOVED, {"input_id": each, **told}) for each in gone])


def told_of(given: Input) -> dict[str, Any]:
    """What events tell of an input. By the key that a person's client gave it, that client knows its own message."""
    is_said = given.kind is InputKind.MESSAGE
    beside = {
        "key": given.idempotency_key if is_said else None,
        "by": given.by if is_said else None,
        "place": given.place,
        "files": given.body.get("files"),
        "task_ids": given.task_ids,
    }
    told = {"input_id": given.id, "kind": given.kind, "mode": given.mode, "text": given.text}
    return told | {name: each for name, each in beside.items() if each}
