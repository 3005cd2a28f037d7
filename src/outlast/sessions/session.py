"""A session and its turns as a program holds them: handles on what is stored, valid across restarts."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import sqlalchemy as sa
from pydantic_ai.messages import ModelMessage

from outlast.clock import monotonic
from outlast.errors import Conflict, InvalidInput, NotFound
from outlast.events.event import Event
from outlast.events.outcome import Outcome, OutcomeFold
from outlast.events.signals import RECHECK_SECONDS, Signals, Subscription, end_topic, input_topic, log_topic
from outlast.events.stream import EventStream, Page
from outlast.ids import InputId, SessionId, TurnId
from outlast.sessions import history, inbox, settlement, turn
from outlast.sessions.attachments import Attachment, Context, body_of
from outlast.sessions.inbox import Limits
from outlast.store import events, inputs, sessions, tasks, turns
from outlast.store.database import Database
from outlast.store.files import FileStore
from outlast.store.inputs import Input, InputKind, InputState, Mode
from outlast.store.sessions import SessionRow
from outlast.store.spill import unpack_object
from outlast.store.tasks import Task

WhenBusy = Literal["steer", "queue", "interrupt", "reject"]


@dataclass(frozen=True, slots=True)
class Services:
    """What handles need to do their work."""

    database: Database
    files: FileStore
    signals: Signals
    limits: Limits
    models: frozenset[str]
    max_reader_lag: int
    typed_output: Callable[[str, Any], Any]


class Turn:
    """One stretch of agent work. The handle holds nothing: ask again after a restart and get the same answer."""

    def __init__(
        self,
        services: Services,
        session_id: SessionId,
        agent: str,
        turn_id: TurnId,
        *,
        ending: Subscription | None = None,
    ) -> None:
        self.id = turn_id
        self.session_id = session_id
        self._services = services
        self._agent = agent
        self._ending = ending
        """Subscribed before the turn could end: then there is nothing to look for before the first signal."""

    async def outcome(self, *, wait: float | None = None) -> Outcome:
        """What the turn came to; waits for its end, at most `wait` seconds, then says what is there so far."""
        return (await self.fold(wait=wait)).outcome

    async def fold(self, *, wait: float | None = None) -> OutcomeFold:
        """The fold of the turn's events up to its end, or up to what stands in the log when the time is over."""
        until = None if wait is None else monotonic() + wait
        fold, position = OutcomeFold(self.id), None
        ending, self._ending = self._ending, None
        is_fresh = ending is not None
        ending = ending or self._services.signals.subscribe(end_topic(self.id))
        while not fold.outcome.is_over:
            left = _left(until)
            if is_fresh or position is not None:
                await ending.wait(RECHECK_SECONDS if left is None else min(RECHECK_SECONDS, left))
            position = await self._add(fold, position)
            if left == 0:
                break
        if fold.outcome.state == "completed":
            fold.outcome.output = self._services.typed_output(self._agent, fold.outcome.output)
        return fold

    async def _add(self, fold: OutcomeFold, after: int | None) -> int:
        """Fold what the log has of the turn after a position, from its first event if None; gives the new position."""

        def page(connection: sa.Connection, after: int | None) -> tuple[int, list[Event]]:
            if after is None:
                row = turns.get(connection, self.id)
                if row is None or row.session_id != self.session_id:
                    raise NotFound("There is no such turn.", id=self.id)
                after = row.first_event - 1
            return after, events.page(connection, self.session_id, after)

        while True:
            after, found = await self._services.database.read(partial(page, after=after))
            for event in found:
                after = event.number or after
                if event.turn_id == self.id:
                    fold.add(await self._whole(event))
                if event.turn_id == self.id and event.is_terminal:
                    return after
            if len(found) < events.PAGE:
                return after

    async def _whole(self, event: Event) -> Event:
        if "call_id" not in event.data:
            return event
        data = await unpack_object(self._services.files, event.data)
        return Event(event.session_id, event.number, event.type, event.at, data, event.turn_id)


class Sent:
    """A message that was accepted: it is kept from now on, whatever happens."""

    def __init__(self, session: "Session", accepted: inbox.Accepted, services: Services) -> None:
        self.input = accepted.input
        self.place = accepted.place
        self.is_repeat = accepted.is_repeat
        self._session = session
        self._signals = services.signals
        self._started: Turn | None = None
        if accepted.turn_id is not None and not accepted.is_repeat:
            ending = services.signals.subscribe(end_topic(accepted.turn_id))
            self._started = Turn(services, session.id, session.agent, accepted.turn_id, ending=ending)

    async def turn(self) -> Turn:
        """The turn in which the model sees this message; waits until it is delivered."""
        moving = self._signals.subscribe(input_topic(self.input.id))
        while True:
            found = await self._session.input(self.input.id)
            if found.state is InputState.REMOVED:
                raise Conflict("The message was removed before it was delivered.")
            if found.turn_id is not None:
                return self._session.turn(found.turn_id)
            await moving.wait()

    async def outcome(self, *, wait: float | None = None) -> Outcome:
        """What that turn came to, after at most `wait` seconds in all; `queued` while the message still waits."""
        until = None if wait is None else monotonic() + wait
        if self._started is not None:
            fold = await self._started.fold(wait=wait)
            if self.input.id in fold.delivered:
                return fold.outcome
            if not fold.outcome.is_over:
                return Outcome()
        found = await self._session.input(self.input.id)
        if found.turn_id is not None:
            return await self._session.turn(found.turn_id).outcome(wait=_left(until))
        try:
            async with asyncio.timeout(_left(until)):
                found_in = await self.turn()
        except TimeoutError:
            return Outcome()
        return await found_in.outcome(wait=_left(until))


class Session:
    """A conversation that outlives processes."""

    def __init__(self, services: Services, row: SessionRow) -> None:
        self.id = row.id
        self.owner_id = row.owner_id
        self.agent = row.agent
        self.title = row.title
        self.metadata: Mapping[str, Any] = row.metadata
        self._services = services
        self._database = services.database

    async def send(
        self,
        text: str,
        *,
        when_busy: WhenBusy = "steer",
        context: Context | None = None,
        files: Sequence[Attachment] = (),
        model: str | None = None,
        idempotency_key: str | None = None,
    ) -> Sent:
        """Accept a message. Returns when it is committed; the answer comes with `Sent.outcome()`."""
        if when_busy not in Mode._value2member_map_:
            raise InvalidInput(f"when_busy={when_busy!r} is not known: use steer, queue, interrupt or reject.")
        if model is not None and model not in self._services.models:
            raise InvalidInput(f"The model {model!r} is not allowed here: use one of {sorted(self._services.models)}.")
        inbox.check_text(text, self._services.limits.max_text)
        body = await body_of(self._services.files, self.id, context=context, files=files, model=model)
        accepted = await self._database.transaction(
            lambda unit: inbox.accept(
                unit,
                self.id,
                text,
                owner_id=self.owner_id,
                mode=Mode(when_busy),
                body=body,
                idempotency_key=idempotency_key,
                limits=self._services.limits,
            ),
            name="accept",
        )
        return Sent(self, accepted, self._services)

    async def ask(self, text: str, *, wait: float | None = None, **options: Any) -> Outcome:
        """Send, wait until the session has settled, and give the outcome of its last turn."""
        sent = await self.send(text, **options)
        outcome = await sent.outcome(wait=wait)
        last = await self.settled(wait=wait)
        return outcome if last is None or last.turn_id == outcome.turn_id else last

    async def settled(self, *, wait: float | None = None) -> Outcome | None:
        """Wait until nothing runs and nothing that will wake the session is open; the last turn's outcome."""
        try:
            changing = self._services.signals.subscribe(log_topic(self.id))
            async with asyncio.timeout(wait):
                while not await self._is_settled():
                    await changing.wait()
        except TimeoutError:
            pass
        last = await self._database.read(lambda connection: turns.last_of(connection, self.id))
        return None if last is None else await self.turn(last.id).outcome(wait=0)

    def events(self, *, after: int = 0, follow: bool = True) -> EventStream:
        """Replay from a position, then follow. Use it in `async with`."""
        return EventStream(
            reader(self._services, self.owner_id),
            self._services.signals,
            self.id,
            after=after,
            is_following=follow,
            max_lag=self._services.max_reader_lag,
            snapshot=self.snapshot,
        )

    async def snapshot(self) -> dict[str, Any]:
        """The session's state in a few fields: what a reader needs who cannot have all events."""
        row = await self._row()
        return {
            "id": row.id,
            "title": row.title,
            "turn_id": row.turn_id,
            "is_held": row.is_held,
            "last_event": row.last_event,
            "inbox": [{"id": each.id, "text": each.text, "mode": each.mode} for each in await self.inbox()],
        }

    def turn(self, turn_id: TurnId) -> Turn:
        return Turn(self._services, self.id, self.agent, turn_id)

    async def history(self) -> list[ModelMessage]:
        """The stored messages, as pydantic-ai has them."""
        return [each.message for each in await history.load(self._database, self._services.files, self.id)]

    async def stop(self) -> Outcome | None:
        """Stop the running turn and hold the session. Returns when the turn has ended; None if none ran."""
        turn_id = await self._database.transaction(
            lambda unit: turn.request_stop(unit, self.id, owner_id=self.owner_id, limits=self._services.limits.turns),
            name="hold",
        )
        return None if turn_id is None else await self.turn(turn_id).outcome()

    async def resume(self) -> Turn | None:
        """End a hold; what waited starts a turn."""
        turn_id = await self._database.transaction(
            lambda unit: turn.resume(unit, self.id, owner_id=self.owner_id, limits=self._services.limits.turns),
            name="resume",
        )
        return None if turn_id is None else self.turn(turn_id)

    async def retry(self) -> Turn:
        """Go on from the last committed message after a turn that failed or was stopped."""
        turn_id = await self._database.transaction(
            lambda unit: turn.retry(unit, self.id, owner_id=self.owner_id, limits=self._services.limits.turns),
            name="retry",
        )
        return self.turn(turn_id)

    async def settle_call(self, call_id: str, verdict: settlement.Verdict, *, by: str, note: str = "") -> Input:
        """Say what became of a call that may or may not have taken effect; the model is told who said so."""
        return await self._database.transaction(
            lambda unit: settlement.settle(
                unit,
                self.id,
                call_id,
                verdict,
                by=by,
                note=note,
                owner_id=self.owner_id,
                limits=self._services.limits,
            ),
            name="settle",
        )

    async def inbox(self) -> list[Input]:
        """The messages that wait, in the order in which they were accepted."""
        waiting = await self._database.read(lambda connection: inputs.waiting(connection, self.id))
        return [each for each in waiting if each.kind is InputKind.MESSAGE]

    async def input(self, input_id: InputId) -> Input:
        found = await self._database.read(lambda connection: inputs.get(connection, self.id, input_id))
        if found is None:
            raise NotFound("There is no such input.", id=input_id)
        return found

    async def edit_input(self, input_id: InputId, text: str) -> Input:
        return await self._database.transaction(
            lambda unit: inbox.edit(
                unit, self.id, input_id, text, owner_id=self.owner_id, limits=self._services.limits
            ),
            name="edit",
        )

    async def remove_input(self, input_id: InputId) -> None:
        await self._database.transaction(
            lambda unit: inbox.remove(unit, self.id, input_id, owner_id=self.owner_id), name="remove"
        )

    async def tasks(self) -> list[Task]:
        return await self._database.read(lambda connection: tasks.page(connection, session_id=self.id, limit=500))

    async def is_held(self) -> bool:
        return (await self._row()).is_held

    async def _is_settled(self) -> bool:
        def look(connection: sa.Connection) -> bool:
            row = sessions.get(connection, self.id, self.owner_id)
            open_tasks = tasks.open_count(connection, self.id, waking_only=True)
            return row is None or (row.turn_id is None and not open_tasks)

        return await self._database.read(look)

    async def _row(self) -> SessionRow:
        row = await self._database.read(lambda connection: sessions.get(connection, self.id, self.owner_id))
        if row is None:
            raise NotFound("There is no such session.", id=self.id)
        return row


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - monotonic())


def reader(services: Services, owner_id: str | None = None) -> Any:
    """Pages of a session's log for a stream."""

    async def read(session_id: SessionId, after: int, limit: int) -> Page | None:
        def page(connection: sa.Connection) -> Page | None:
            if owner_id is not None and sessions.get(connection, session_id, owner_id) is None:
                return None
            bounds = events.bounds(connection, session_id)
            if bounds is None:
                return None
            found = events.page(connection, session_id, max(after, bounds[0] - 1), limit)
            return Page(found, bounds[0], bounds[1])

        return await services.database.read(page)

    return read
