"""What the calls of a worker share."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from outlast.calls.call import Connections, Operations
from outlast.calls.questions import QuestionSource
from outlast.calls.view import Viewer
from outlast.calls.within.channel import CallChannel, ChannelHome
from outlast.ids import TaskId, WorkerId
from outlast.outgoing.addresses import Network
from outlast.runs.parked import ParkedCalls
from outlast.store.files.session_files import SessionFiles
from outlast.store.repositories import tasks


@dataclass(frozen=True, slots=True)
class CallParts:
    """One set per worker; its attempts use it, and whoever made it closes what is in it."""

    home: ChannelHome
    viewer: Viewer
    parked: ParkedCalls
    worker_id: WorkerId
    max_open_tasks: int
    deadline: timedelta
    connections: Connections | None = None
    slots: dict[tuple[str, int], asyncio.Semaphore] = field(default_factory=dict[tuple[str, int], asyncio.Semaphore])
    external: Operations | None = None
    questions: QuestionSource | None = None
    networks: Sequence[Network] = ()
    files: SessionFiles | None = None
    confirm: Callable[[WorkerId], Coroutine[Any, Any, None]] | None = None
    """Raises AttemptLost when the worker of that name was taken for dead. None: alone with its database, none is."""

    @property
    def confirm_call(self) -> Callable[[], Coroutine[Any, Any, None]] | None:
        return None if self.confirm is None else partial(self.confirm, self.worker_id)


def bind_channel(channel: CallChannel, parts: CallParts, task_id: TaskId, *, attempt: int) -> None:
    """From now on what the call says is said of its task, and written only while the task may be."""
    channel.bind(
        may_write=lambda unit: tasks.may_write(unit, task_id, attempt),
        tell_progress=lambda progress: parts.parked.tell_progress(task_id, attempt, progress),
    )
