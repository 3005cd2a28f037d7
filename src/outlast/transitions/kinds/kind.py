"""What is durable of a kind of task: the moves it may make, and what becomes of it when its worker died."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from outlast.limits import Limits
from outlast.store.repositories.stored_task import MOVES, Task
from outlast.transitions.task_errors import TIMED_OUT
from outlast.wire.task_state import TaskState

Verdict = Callable[[Task, datetime, Limits], dict[str, Any] | None]
"""Of a task whose worker is dead, at this instant: the error that it ends with, or None if it is run again."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of task. How it is run stands in `runs/kinds/`, under the same name."""

    name: str
    verdict: Verdict
    needs_worker: bool = True
    """False: it is running without one, so no takeover touches it; whoever cancels it or lets it expire ends it."""
    timed_out: dict[str, Any] = field(default_factory=lambda: TIMED_OUT)
    """What it ends with when its deadline comes while no worker has it."""
    moves: Mapping[TaskState, frozenset[TaskState]] = field(default_factory=lambda: MOVES)
