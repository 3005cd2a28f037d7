"""Streams of a server that survive their connections: complete, in order, nothing twice."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, NamedTuple

from pydantic_core import from_json

from outlast.client.connection import Connection, Params, path
from outlast.events.closable import Stream
from outlast.events.event import Event
from outlast.ids import SessionId, TaskId, TurnId
from outlast.wire.task import PieceAnswer, Task

_OPENED, _LIVE, _OUTPUT = "stream.opened", "stream.live", "task.output"
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
    """What changes in all sessions of the caller, everything of those that are named, and the output of tasks.

    `cursor`: where to go on; known from when the stream is open. `is_live`: all that was there has been given.
    `opened`: what the server said last when it opened the stream: its clock, its version.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        after: str | None,
        sessions: Sequence[str],
        outputs: Sequence[str],
        types: Sequence[str],
    ) -> None:
        super().__init__(self._follow())
        self.cursor = after
        self.is_live = False
        self.opened: dict[str, Any] = {}
        self._connection = connection
        self._after = after
        self._last: str | None = None
        """Where the server said that it is: from then on that counts, and not the positions that were asked for."""
        self._params = {"sessions": ",".join(sessions) or None, "types": ",".join(types) or None}
        self._offsets = dict(_asked_output(each) for each in outputs)

    async def _follow(self) -> AsyncGenerator[Fed]:
        frames = self._connection.follow("/v1/events", params=self._asked, position=lambda: self._last)
        async with aclosing(frames):
            async for frame in frames:
                data = from_json(frame.data)
                if data["type"] == _OPENED:
                    self.opened, self.is_live = data["data"], False
                    self.cursor = self._last = self.opened["cursor"]
                    self._offsets.update((id, str(offset)) for id, offset in self.opened["outputs"].items())
                    continue
                if data["type"] == _LIVE:
                    self.is_live = True
                    continue
                event = event_of(data)
                if event.type == _OUTPUT:
                    offset = self._offsets.get(event.data["task_id"])
                    if offset is not None and offset.isdigit() and event.data["next_offset"] <= int(offset):
                        continue
                    self._offsets[event.data["task_id"]] = str(event.data["next_offset"])
                elif event.number is not None:
                    self.cursor = self._last = frame.id
                yield Fed(self.cursor or "", event)

    def _asked(self) -> Params:
        """Output goes on where it was; everything else does by the cursor."""
        outputs = ",".join(id if offset is None else f"{id}:{offset}" for id, offset in self._offsets.items())
        after = self._after if self._last is None else None
        return {**self._params, "after": after, "outputs": outputs or None}


def _asked_output(asked: str) -> tuple[str, str | None]:
    task_id, _, offset = asked.partition(":")
    return task_id, offset or None


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
