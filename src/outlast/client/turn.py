"""A turn and a sent message as a client holds them: valid across restarts of the server and of the client."""

import asyncio
from typing import Any

from pydantic import TypeAdapter

from outlast.client.connection import Connection, path
from outlast.client.streams import EventStream
from outlast.clock import monotonic
from outlast.errors import Conflict, NotFound
from outlast.events.outcome import Outcome
from outlast.wire.forms import ListOf
from outlast.wire.message import AcceptedAnswer, InputAnswer
from outlast.wire.session import SessionAnswer
from outlast.wire.task import Task

LONG_POLL_SECONDS = 60.0
"""How long one request waits at most: proxies cut those that take longer."""
_outcomes = TypeAdapter(Outcome)


class Turn:
    """One stretch of agent work."""

    def __init__(self, connection: Connection, session_id: str, turn_id: str) -> None:
        self.id = turn_id
        self.session_id = session_id
        self._connection = connection

    async def outcome(self, *, wait: float | None = None, settle: bool = False) -> Outcome:
        """What the turn came to; waits for its end, at most `wait` seconds, then says what is there so far.

        With `settle` it waits until nothing runs in the session and nothing that will wake it is open, and gives the
        outcome of the session's last turn by then.
        """
        until = deadline(wait)
        found = await self._outcome(until)
        if not settle or not found.is_over:
            return found
        return await settled(self._connection, self.session_id, wait=seconds_left(until)) or found

    async def _outcome(self, until: float | None) -> Outcome:
        while True:
            left = seconds_left(until)
            found = await self._connection.get(
                path("sessions", self.session_id, "result"), wait=long_poll(left), turn_id=self.id
            )
            outcome = outcome_of(found)
            if outcome.is_over or left == 0:
                return outcome


class Sent:
    """A message that was accepted: it is kept from now on, whatever happens."""

    def __init__(self, connection: Connection, session_id: str, accepted: AcceptedAnswer) -> None:
        self.input_id = accepted.input_id
        self.place = accepted.position
        self.is_repeat = accepted.is_repeat
        self.after = accepted.after
        """The events after this number tell what becomes of the message."""
        self._turn_id = accepted.turn_id
        self._connection = connection
        self._session_id = session_id

    @property
    def turn_id(self) -> str | None:
        """The turn that starts with this message, if one does; a message to a busy session has none yet."""
        return self._turn_id

    async def events(self) -> EventStream:
        """The session's log from this message on; of a repeat, from where its turn begins.

        `async with await sent.events() as stream: ...`
        """
        is_over = self.is_repeat and await self._is_over()
        return EventStream(self._connection, self._session_id, after=self.after, follow=not is_over, types=())

    async def turn(self) -> Turn:
        """The turn in which the model sees this message; waits until it is delivered."""
        position: int = (await self._connection.get(path("sessions", self._session_id)))["last_event"]
        types = ("input.delivered", "input.removed")
        async with EventStream(self._connection, self._session_id, after=position, follow=True, types=types) as stream:
            while True:
                found = await self._input()
                if found.state == "removed":
                    raise Conflict("The message was removed before it was delivered.")
                if found.turn_id is not None:
                    return Turn(self._connection, self._session_id, found.turn_id)
                async for event in stream:
                    if event.data.get("input_id") == self.input_id or event.is_control:
                        break

    async def outcome(self, *, wait: float | None = None, settle: bool = False) -> Outcome:
        """What that turn came to, after at most `wait` seconds in all; `queued` while the message still waits.

        With `settle` it waits until nothing runs in the session and nothing that will wake it is open, and gives the
        outcome of the session's last turn by then.
        """
        until = deadline(wait)
        found = await self._outcome(until)
        if not settle or not found.is_over:
            return found
        return await settled(self._connection, self._session_id, wait=seconds_left(until)) or found

    async def _outcome(self, until: float | None) -> Outcome:
        if self.turn_id is not None:
            turn = Turn(self._connection, self._session_id, self.turn_id)
            outcome = await turn.outcome(wait=seconds_left(until))
            if not outcome.is_over or (await self._input()).turn_id == self.turn_id:
                return outcome
        try:
            async with asyncio.timeout(seconds_left(until)):
                found_in = await self.turn()
        except TimeoutError:
            return Outcome()
        return await found_in.outcome(wait=seconds_left(until))

    async def _is_over(self) -> bool:
        found = await self._input()
        if found.turn_id is None:
            return found.state == "removed"
        return (await Turn(self._connection, self._session_id, found.turn_id).outcome(wait=0)).is_over

    async def _input(self) -> InputAnswer:
        found = await self._connection.get(path("sessions", self._session_id, "inbox", self.input_id))
        return InputAnswer.model_validate(found)


async def settled(connection: Connection, session_id: str, *, wait: float | None = None) -> Outcome | None:
    """Wait until nothing runs and nothing that will wake the session is open; the last turn's outcome."""
    until = deadline(wait)
    while True:
        left = seconds_left(until)
        try:
            answer = await connection.get(path("sessions", session_id, "result"), wait=long_poll(left), until="settled")
        except NotFound:
            await connection.get(path("sessions", session_id))
            return None
        if left == 0 or await is_settled(connection, session_id):
            return outcome_of(answer)


async def is_settled(connection: Connection, session_id: str) -> bool:
    session = SessionAnswer.model_validate(await connection.get(path("sessions", session_id)))
    if session.turn_id is not None:
        return False
    answer = await connection.get("/v1/tasks", session=session_id, state="open", limit=500)
    return all(each.wake == "silent" for each in ListOf[Task].model_validate(answer).items)


def outcome_of(found: Any) -> Outcome:
    return _outcomes.validate_python(found)


def deadline(wait: float | None) -> float | None:
    return None if wait is None else monotonic() + wait


def seconds_left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - monotonic())


def long_poll(left: float | None) -> float:
    """How many seconds the next request waits."""
    return LONG_POLL_SECONDS if left is None else min(left, LONG_POLL_SECONDS)
