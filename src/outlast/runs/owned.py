"""A call that goes on in this process, as it is held; and what is heard of a task before there is one."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from outlast.calls.call import RunningCall
from outlast.events.signals import Signals, task_topic
from outlast.ids import TaskId


@dataclass(slots=True, eq=False)
class Owned:
    """One call that goes on. `task_id` None: its turn is over or lost, and only the log hears of its end."""

    call: RunningCall
    inner: asyncio.Task[Any]
    task_id: TaskId | None
    attempt: int = 1
    when_over: Callable[[], Awaitable[None]] | None = None
    is_silent: bool = False
    """Its end wakes nobody, so it may be recorded together with others."""
    is_canceled: bool = False
    is_left: bool = False
    """Cancelled because this process is leaving or was taken for dead: another one tells what became of it."""
    unwatch: Callable[[], None] | None = None
    deadline: asyncio.TimerHandle | None = None
    deadline_at: datetime | None = None
    """As it was last seen: while a call waits for an answer its own stands still."""
    timers: list[asyncio.TimerHandle] = field(default_factory=list[asyncio.TimerHandle])


class SignalLatch:
    """Hears what is said of a task before there is a call that could heed it."""

    def __init__(self, signals: Signals, task_id: TaskId) -> None:
        self._times = 0
        self.close = signals.watch(task_topic(task_id), self._hear)

    @property
    def has_heard(self) -> bool:
        """More than that the task was claimed, which this process itself says, once."""
        return self._times > 1

    def _hear(self) -> None:
        self._times += 1
