"""A turn and a sent message as a program holds them: handles on what is stored, valid across restarts."""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import sqlalchemy as sa

from outlast.agents.output import StoredOutput
from outlast.clock import monotonic
from outlast.errors import Conflict, NotFound
from outlast.events import signals
from outlast.events.event import Event
from outlast.events.outcome import Outcome
from outlast.events.signals import Subscription, end_topic, input_topic, log_topic
from outlast.events.stream import EventStream
from outlast.events.types import EventType
from outlast.events.views.turn_fold import TurnFold
from outlast.handles import reading
from outlast.handles.services.services import Services
from outlast.ids import OwnerId, SessionId, TurnId
from outlast.store.database import retry_while_unavailable
from outlast.store.files.spill import unpack_object
from outlast.store.repositories import agents, events, folds, inputs, tasks, turns
from outlast.store.repositories.inputs import Input, InputState
from outlast.store.repositories.turns import TurnRow, TurnState
from outlast.transitions.turns.inbox import Accepted

_FEW = 50
"""Events of a turn of usual length: they are read at once."""


class Lead(NamedTuple):
    """Where a turn begins for a reader, and whether its end stands in the log already, if it is still kept.

    `kept`: in place of its log, where that is no longer kept.
    """

    after: int
    is_over: bool
    kept: Sequence[Event] | None = None


class Read(NamedTuple):
    """How far the log was read for a turn, and the turn's agent: its session may have another one by now."""

    position: int
    agent: str


class Folded(NamedTuple):
    """What a turn came to, and the ids of the inputs that the model was given in it."""

    outcome: Outcome
    delivered: Collection[str]


class Turn:
    """One stretch of agent work. The handle holds nothing: ask again after a restart and get the same answer."""

    def __init__(
        self,
        services: Services,
        session_id: SessionId,
        turn_id: TurnId,
        *,
        owner_id: OwnerId,
        ending: Subscription | None = None,
    ) -> None:
        self.id = turn_id
        self.session_id = session_id
        self._services = services
        self._owner_id = owner_id
        self._ending = ending
        """Subscribed before the turn could end: then there is nothing to look for before the first signal."""

    async def outcome(self, *, wait: float | None = None, settle: bool = False) -> Outcome:
        """What the turn came to; waits for its end, at most `wait` seconds, then says what is there so far.

        With `settle` it waits until nothing runs in the session and nothing that will wake it is open, and gives the
        outcome of the session's last turn by then.
        """
        until = None if wait is None else monotonic() + wait
        found = (await self.fold(wait=wait)).outcome
        if not settle or not found.is_over:
            return found
        return await settled(self._services, self.session_id, self._owner_id, wait=seconds_left(until)) or found

    async def lead(self) -> Lead:
        """Where a reader begins who also wants to know what happened since the turn before this one."""

        def look(connection: sa.Connection) -> Lead:
            row = self._row(connection)
            if row.log_removed_at is not None:
                kept = folds.events_of(connection, self.session_id, self.id)
                return Lead(kept[-1].number or 0 if kept else row.first_event, row.is_over, kept)
            ended = events.last_end(connection, self.session_id, before=row.first_event)
            if ended is None:
                found = events.bounds(connection, self.session_id)
                ended = row.first_event - 1 if found is None or found[0] == 1 else found[0] - 1
            return Lead(ended, row.is_over)

        found = await self._services.database.read(look)
        if found.kept is None:
            return found
        return found._replace(kept=[self._services.shown.event(each) for each in found.kept])

    async def fold(self, *, wait: float | None = None) -> Folded:
        """The fold of the turn's events up to its end, or up to what stands in the log when the time is over."""
        until = None if wait is None else monotonic() + wait
        fold, read = TurnFold(self.id), None
        ending, self._ending = self._ending, None
        is_fresh = ending is not None
        ending = ending or self._services.signals.subscribe(end_topic(self.id))
        while not fold.is_over:
            left = seconds_left(until)
            if is_fresh or read is not None:
                await ending.wait(None if left is None else min(signals.RECHECK_SECONDS, left))
            read = await self._add(fold, None if read is None else read.position)
            if left == 0:
                break
        outcome = fold.outcome
        if not outcome.is_over:
            missing = await self._services.database.read(self._no_worker_for)
            outcome.state = "queued" if missing is not None else outcome.state
            outcome.no_worker_for = missing
        outcome.usage = self._services.shown.usage(outcome.usage)
        if outcome.state == "completed" and read is not None:
            stored = StoredOutput(outcome.output, fold.output_type, fold.output_fields)
            outcome.output = self._services.output_of(read.agent, stored)
        return Folded(outcome, fold.delivered)

    async def begins_after(self) -> int:
        """The position in the log after which the turn's first event stands."""
        return (await self._services.database.read(self._row, is_single=True)).first_event - 1

    def _no_worker_for(self, connection: sa.Connection) -> str | None:
        """Also of a turn that has begun, and was handed over by a worker whose successor no longer has its agent."""
        row = self._row(connection)
        return row.agent if row.state is TurnState.QUEUED and row.agent not in agents.present(connection) else None

    def _row(self, connection: sa.Connection) -> TurnRow:
        row = turns.get(connection, self.id)
        if row is None or row.session_id != self.session_id:
            raise NotFound("There is no such turn.", id=self.id)
        return row

    async def _add(self, fold: TurnFold, after: int | None) -> Read:
        """Fold what the log has of the turn after a position, from its first event if None; gives how far it is read.

        If the turn is over and its end is no longer in the log, its row tells how it ended.
        """

        def page(connection: sa.Connection, after: int | None, limit: int) -> tuple[TurnRow, list[Event]]:
            row = self._row(connection)
            if row.log_removed_at is not None and (after is None or after < row.first_event):
                return row, folds.events_of(connection, self.session_id, self.id)
            start = row.first_event - 1 if after is None else after
            return row, events.page(connection, self.session_id, start, limit)

        look, limit = self._services.database.glance, _FEW
        while True:
            row, found = await look(partial(page, after=after, limit=limit))
            after = row.first_event - 1 if after is None else after
            for event in found:
                after = event.number or after
                if event.turn_id == self.id:
                    fold.add(self._services.shown.event(await self._whole(event)))
                if event.turn_id == self.id and event.is_terminal:
                    return Read(after, row.agent)
            if len(found) < limit:
                if row.is_over:
                    fold.end(row.state.value, self._services.shown.error(row.error), row.usage)
                return Read(after, row.agent)
            look, limit = self._services.database.read, events.PAGE

    async def _whole(self, event: Event) -> Event:
        if "call_id" not in event.data and event.type != EventType.TURN_COMPLETED:
            return event
        data = await unpack_object(self._services.files, event.data)
        return Event(event.session_id, event.number, event.type, event.at, data, event.turn_id)


class Sent:
    """A message that was accepted: it is kept from now on, whatever happens."""

    def __init__(self, services: Services, session_id: SessionId, owner_id: OwnerId, accepted: Accepted) -> None:
        self.input = accepted.input
        self.input_id = accepted.input.id
        self.place = accepted.place
        self.is_repeat = accepted.is_repeat
        self.after = accepted.after
        """The events after this number tell what becomes of the message."""
        self._services = services
        self._session_id = session_id
        self._owner_id = owner_id
        self._accepted = accepted
        self._started: Turn | None = None
        if accepted.turn_id is not None and not accepted.is_repeat:
            ending = services.signals.subscribe(end_topic(accepted.turn_id))
            self._started = Turn(services, session_id, accepted.turn_id, owner_id=owner_id, ending=ending)

    @property
    def turn_id(self) -> TurnId | None:
        """The turn that starts with this message, if one does; a message to a busy session has none yet."""
        return self.input.turn_id if self._started is None else self._started.id

    async def events(self) -> EventStream:
        """The session's log from this message on; of a repeat, from where its turn begins.

        `async with await sent.events() as stream: ...`
        """
        accepted = self._accepted
        is_over = self.input.state is InputState.REMOVED
        if self.is_repeat and self.input.turn_id is not None:
            is_over = (await retry_while_unavailable(self._turn(self.input.turn_id).lead)).is_over
        # What is over is told as far as it is kept: there is nothing to wait for.
        return reading.stream(
            self._services,
            self._session_id,
            self._owner_id,
            after=self.after,
            known=accepted.told,
            follow=not is_over,
        )

    async def turn(self) -> Turn:
        """The turn in which the model sees this message; waits until it is delivered."""
        moving = self._services.signals.subscribe(input_topic(self.input.id))
        while True:
            found = await self._input()
            if found.state is InputState.REMOVED:
                raise Conflict("The message was removed before it was delivered.")
            if found.turn_id is not None:
                return self._turn(found.turn_id)
            await moving.wait()

    async def outcome(self, *, wait: float | None = None, settle: bool = False) -> Outcome:
        """What that turn came to, after at most `wait` seconds in all; `queued` while the message still waits.

        With `settle` it waits until nothing runs in the session and nothing that will wake it is open, and gives the
        outcome of the session's last turn by then.
        """
        until = None if wait is None else monotonic() + wait
        found = await self._outcome(until)
        if not settle or not found.is_over:
            return found
        return await settled(self._services, self._session_id, self._owner_id, wait=seconds_left(until)) or found

    async def _outcome(self, until: float | None) -> Outcome:
        if self._started is not None:
            fold = await self._started.fold(wait=seconds_left(until))
            if self.input.id in fold.delivered:
                return fold.outcome
            if not fold.outcome.is_over:
                return Outcome(no_worker_for=fold.outcome.no_worker_for)
        found = await self._input()
        if found.turn_id is not None:
            return await self._turn(found.turn_id).outcome(wait=seconds_left(until))
        try:
            async with asyncio.timeout(seconds_left(until)):
                found_in = await self.turn()
        except TimeoutError:
            return Outcome()
        return await found_in.outcome(wait=seconds_left(until))

    async def _input(self) -> Input:
        def read(connection: sa.Connection) -> Input | None:
            is_there = events.bounds(connection, self._session_id) is not None
            return inputs.get(connection, self._session_id, self.input.id) if is_there else None

        found = await self._services.database.read(read)
        if found is None:
            raise NotFound("There is no such input.", id=self.input.id)
        return found

    def _turn(self, turn_id: TurnId) -> Turn:
        return Turn(self._services, self._session_id, turn_id, owner_id=self._owner_id)


async def settled(
    services: Services, session_id: SessionId, owner_id: OwnerId, *, wait: float | None = None
) -> Outcome | None:
    """Wait until nothing runs and nothing that will wake the session is open; the last turn's outcome."""

    look = partial(is_settled, session_id=session_id, owner_id=owner_id)
    changing = services.signals.subscribe(log_topic(session_id))
    with suppress(TimeoutError):
        async with asyncio.timeout(wait):
            while not await services.database.read(look):
                await changing.wait()
    return await last_outcome(services, session_id, owner_id, wait=0)


def is_settled(connection: sa.Connection, session_id: SessionId, owner_id: OwnerId) -> bool:
    row = reading.there(connection, session_id, owner_id)
    return row.turn_id is None and not tasks.open_count(connection, session_id, waking_only=True)


async def last_outcome(
    services: Services, session_id: SessionId, owner_id: OwnerId, *, wait: float | None
) -> Outcome | None:
    """What the last turn came to, or None if there was none yet."""

    def look(connection: sa.Connection) -> TurnRow | None:
        reading.there(connection, session_id, owner_id)
        return turns.last_of(connection, session_id)

    last = await services.database.read(look)
    if last is None:
        return None
    return await Turn(services, session_id, last.id, owner_id=owner_id).outcome(wait=wait)


def seconds_left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - monotonic())
