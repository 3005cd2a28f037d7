"""Streams of a server that survive their connections: complete, in order, nothing twice."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, NamedTuple

from pydantic_core import from_json

from outlast.client.connection import Connection, path
from outlast.events.closable import Stream
from outlast.events.event import Event
from outlast.ids import SessionId, TaskId, TurnId
from outlast.wire.task import PieceAnswer, Task

NOW = "now"
DELETED = "session.deleted"


class Fed(NamedTuple):
    """An event, and the cursor to resume from after it."""

    cursor: str
    event: Event


class EventStream(Stream[Event]):
    """The events of a session. `position` is the number of the last one that was given."""

    def __init__(
        self, connection: Connection, session_id: str, *, after: int, follow: bool, types: Sequence[str]
    ) -> None:
        super().__init__(self._follow() if follow else self._read())
        self.position = after
        self._connection = connection
        self._path = path("sessions", session_id, "events")
        self._types = ",".join(types) or None

    async def _follow(self) -> AsyncGenerator[Event]:
        """Ends with the session."""
        frames = self._connection.follow(self._path, params={"types": self._types}, position=lambda: str(self.position))
        async with aclosing(frames):
            async for frame in frames:
                event = event_of(from_json(frame.data))
                if event.number is not None:
                    if event.number <= self.position:
                        continue
                    self.position = event.number
                yield event
                if event.type == DELETED:
                    return

    async def _read(self) -> AsyncGenerator[Event]:
        """What is there now, page by page."""
        while True:
            page = await self._connection.get(self._path, after=self.position, types=self._types)
            for each in page["items"]:
                event = event_of(each)
                yield event
            if page["next"] == self.position:
                return
            self.position = page["next"]


class FeedStream(Stream[Fed]):
    """What changes in all sessions of the caller, and everything of those that are named."""

    def __init__(
        self, connection: Connection, *, after: str | None, sessions: Sequence[str], types: Sequence[str]
    ) -> None:
        super().__init__(self._follow())
        self.cursor = after
        self._connection = connection
        self._params = {"sessions": ",".join(sessions) or None, "types": ",".join(types) or None}

    async def _follow(self) -> AsyncGenerator[Fed]:
        if self.cursor == NOW:
            # Asked once: "now" after a cut would be later than the last event that was given.
            page = await self._connection.ask("GET", "/v1/events", params={**self._params, "after": NOW, "limit": 1})
            self.cursor = page["next"]
        frames = self._connection.follow("/v1/events", params=self._params, position=lambda: self.cursor)
        async with aclosing(frames):
            async for frame in frames:
                event = event_of(from_json(frame.data))
                if event.number is not None:
                    if frame.id == self.cursor:
                        continue
                    self.cursor = frame.id
                yield Fed(self.cursor or "", event)


class OutputStream(Stream[PieceAnswer]):
    """The output of a task while it runs; ends with the task, which `ended` then has."""

    def __init__(self, connection: Connection, task_id: str, *, offset: int) -> None:
        super().__init__(self._follow())
        self.offset = offset
        self.ended: Task | None = None
        self._connection = connection
        self._path = path("tasks", task_id, "output")

    async def _follow(self) -> AsyncGenerator[PieceAnswer]:
        frames = self._connection.follow(self._path, position=lambda: str(self.offset))
        async with aclosing(frames):
            async for frame in frames:
                if frame.event == "end":
                    self.ended = Task.model_validate_json(frame.data)
                    return
                piece = PieceAnswer.model_validate_json(frame.data)
                if piece.next_offset > self.offset:
                    self.offset = piece.next_offset
                    yield piece


def event_of(data: dict[str, Any]) -> Event:
    turn_id, task_id = data.get("turn_id"), data.get("task_id")
    return Event(
        session_id=SessionId(data["session_id"]),
        number=data["number"],
        type=data["type"],
        at=datetime.fromisoformat(data["at"]),
        data=data["data"],
        turn_id=None if turn_id is None else TurnId(turn_id),
        task_id=None if task_id is None else TaskId(task_id),
    )
