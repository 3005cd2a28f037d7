"""What the control tools are made from."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

import sqlalchemy as sa
from pydantic_ai.exceptions import ToolFailed

from outlast.calls.call import RunningCall, current_call
from outlast.calls.control.turn_waits import TurnWaits
from outlast.clock import Clock
from outlast.events.signals import Signals
from outlast.store.database import Database, retry_while_unavailable
from outlast.store.files.file_store import FileStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ControlParts:
    """One set per worker. Each control tool finds its session by the call that runs."""

    database: Database
    files: FileStore
    signals: Signals
    clock: Clock
    call_deadline: timedelta
    names: frozenset[str] = frozenset()
    """Of all control tools."""
    waits: TurnWaits = field(default_factory=TurnWaits)

    async def read(self, fn: Callable[[sa.Connection], T]) -> T:
        """The turn waits for the database: that this was away is nothing the model could do anything about."""
        return await retry_while_unavailable(lambda: self.database.read(fn))


def this_call() -> RunningCall:
    """The control call that runs."""
    call = current_call.get()
    if call is None:
        raise ToolFailed("This tool works only inside an Outlast turn.")
    return call
