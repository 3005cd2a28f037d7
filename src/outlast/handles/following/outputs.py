"""Outputs of tasks in the stream of their owner: in pieces, at most four a second of each."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import sqlalchemy as sa

from outlast.errors import NotFound
from outlast.events.event import Event
from outlast.events.signals import output_topic
from outlast.events.types import EventType
from outlast.handles.following.place import END
from outlast.handles.services.log_reader import LogPages
from outlast.ids import OwnerId, SessionId, TaskId
from outlast.store.repositories import outputs, tasks
from outlast.store.repositories.outputs import Piece

SECONDS = 0.25
PIECE = 32 * 1024


@dataclass(slots=True)
class Output:
    """How far one of them was told."""

    task_id: TaskId
    session_id: SessionId
    output_id: str
    offset: int
    next_at: float = 0.0
    is_stale: bool = True

    @property
    def topic(self) -> str:
        return output_topic(self.session_id, self.output_id)


def found(connection: sa.Connection, owner_id: OwnerId, asked: Mapping[TaskId, int | str | None]) -> list[Output]:
    """Those that were asked for; of another owner's task it is said that there is none."""
    made: list[Output] = []
    for task_id, offset in asked.items():
        task = tasks.get(connection, task_id)
        if task is None or task.owner_id != owner_id:
            raise NotFound("There is no such task.", id=task_id)
        if offset == END:
            offset = outputs.total(connection, task.session_id, task.output_id)
        made.append(Output(task_id, task.session_id, task.output_id, int(offset or 0)))
    return made


class Outputs:
    """Those that one stream follows. One is let go of when its task has ended and all of it was told."""

    def __init__(self, pages: LogPages, followed: Collection[Output]) -> None:
        self._pages = pages
        self._followed = {each.topic: each for each in followed}

    def heard(self, topics: Collection[str]) -> None:
        """Signals of these topics came."""
        for each in topics:
            if each in self._followed:
                self._followed[each].is_stale = True

    def all_is_stale(self) -> None:
        for each in self._followed.values():
            each.is_stale = True

    @property
    def offsets(self) -> dict[str, int]:
        """How far each was told."""
        return {each.task_id: each.offset for each in self._followed.values()}

    @property
    def next_at(self) -> float | None:
        """When the first is due of which there may be more."""
        return min((each.next_at for each in self._followed.values() if each.is_stale), default=None)

    async def due(self, now: float) -> list[Event]:
        """A piece of each whose time has come."""
        pieces: list[Event] = []
        for topic, each in list(self._followed.items()):
            if not each.is_stale or now < each.next_at:
                continue
            each.is_stale = False  # what is said from here on is heard
            try:
                is_over, event = await self._pages.shared(
                    (each.task_id, each.offset), partial(_look, output=each, offset=each.offset)
                )
            except BaseException:
                each.is_stale = True
                raise
            if event is not None:
                each.offset, each.next_at, each.is_stale = event.data["next_offset"], now + SECONDS, True
                pieces.append(event)
            elif is_over:
                del self._followed[topic]
        return pieces


def _look(connection: sa.Connection, output: Output, offset: int) -> tuple[bool, Event | None]:
    """Whether the task is over, and what there is. In this order: what was said before its end is found."""
    task = tasks.get(connection, output.task_id)
    piece = outputs.read(connection, output.session_id, output.output_id, offset=offset, length=PIECE)
    return task is None or task.is_over, _event(output, piece) if piece.text else None


def _event(output: Output, piece: Piece) -> Event:
    data = {
        "task_id": output.task_id,
        "offset": piece.offset,
        "next_offset": piece.next_offset,
        "text": piece.text,
        "cut": piece.cut,
    }
    return Event(output.session_id, None, EventType.TASK_OUTPUT.value, datetime.now(UTC), data, task_id=output.task_id)
