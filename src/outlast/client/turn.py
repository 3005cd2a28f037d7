"""A turn and a sent message as a client holds them: valid across restarts of the server and of the client."""

import asyncio
from typing import Any

from pydantic import TypeAdapter

from outlast.client.connection import Connection, path
from outlast.client.streams import EventStream
from outlast.clock import monotonic
from outlast.errors import Conflict
from outlast.events.outcome import Outcome
from outlast.wire.message import AcceptedAnswer, InputAnswer

HOLD_SECONDS = 60.0
"""How long one request waits at most: proxies cut those that take longer."""
_outcomes = TypeAdapter(Outcome)


class Turn:
    """One stretch of agent work."""

    def __init__(self, connection: Connection, session_id: str, turn_id: str) -> None:
        self.id = turn_id
        self.session_id = session_id
        self._connection = connection

    async def outcome(self, *, wait: float | None = None) -> Outcome:
        """What the turn came to; waits for its end, at most `wait` seconds, then says what is there so far."""
        until = deadline(wait)
        while True:
            left = seconds_left(until)
            found = await self._connection.get(
                path("sessions", self.session_id, "result"), wait=hold(left), turn_id=self.id
            )
            outcome = outcome_of(found)
            if outcome.is_over or left == 0:
                return outcome


class Sent:
    """A message that was accepted: it is kept from now on, whatever happens."""

    def __init__(self, connection: Connection, session_id: str, accepted: AcceptedAnswer) -> None:
        self.input_id = accepted.input_id
        self.turn_id = accepted.turn_id
        """The turn that starts with this message, if one does; a message to a busy session has none yet."""
        self.place = accepted.position
        self.is_repeat = accepted.is_repeat
        self._connection = connection
        self._session_id = session_id

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

    async def outcome(self, *, wait: float | None = None) -> Outcome:
        """What that turn came to, after at most `wait` seconds in all; `queued` while the message still waits."""
        until = deadline(wait)
        if self.turn_id is not None:
            outcome = await Turn(self._connection, self._session_id, self.turn_id).outcome(wait=wait)
            if not outcome.is_over or (await self._input()).turn_id == self.turn_id:
                return outcome
        try:
            async with asyncio.timeout(seconds_left(until)):
                found_in = await self.turn()
        except TimeoutError:
            return Outcome()
        return await found_in.outcome(wait=seconds_left(until))

    async def _input(self) -> InputAnswer:
        found = await self._connection.get(path("sessions", self._session_id, "inbox", self.input_id))
        return InputAnswer.model_validate(found)


def outcome_of(found: Any) -> Outcome:
    return _outcomes.validate_python(found)


def deadline(wait: float | None) -> float | None:
    return None if wait is None else monotonic() + wait


def seconds_left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - monotonic())


def hold(left: float | None) -> float:
    """How long the next request waits."""
    return HOLD_SECONDS if left is None else min(left, HOLD_SECONDS)
