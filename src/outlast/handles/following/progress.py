"""Progress of tasks whose sessions a reader did not ask for: at most once a second for each task."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from outlast.events.event import Event
from outlast.events.types import EventType
from outlast.ids import TaskId

SECONDS = 1.0
_MOST = 1_000
_OF_PROGRESS = ("progress", "detail")


@dataclass(slots=True)
class _Told:
    at: float
    state: Mapping[str, Any]
    """Its snapshot without what changes as it goes on."""
    held: Event | None = None


class Progress:
    """The last one wins. Any other change of a task is told at once, and takes the place of what is held."""

    def __init__(self) -> None:
        self._told: OrderedDict[TaskId, _Told] = OrderedDict()
        self._holding: dict[TaskId, _Told] = {}

    def admits(self, event: Event, now: float) -> bool:
        """Whether to tell it now; else it is held until its time has come."""
        if event.task_id is None or not event.type.startswith("task."):
            return True
        if event.type != EventType.TASK_CHANGED:
            self._told.pop(event.task_id, None)
            self._holding.pop(event.task_id, None)
            return True
        task = event.data.get("task")
        if not isinstance(task, dict):  # it could not be read
            return True
        snapshot = cast(Mapping[str, Any], task)
        state = {name: snapshot[name] for name in snapshot if name not in _OF_PROGRESS}
        last = self._told.get(event.task_id)
        if last is not None and now < last.at + SECONDS and last.state == state:
            last.held = event
            self._holding[event.task_id] = last
            return False
        self._holding.pop(event.task_id, None)
        self._told[event.task_id] = _Told(now, state)
        self._told.move_to_end(event.task_id)
        if len(self._told) > _MOST:
            self._told.popitem(last=False)
        return True

    def due(self, now: float) -> list[Event]:
        """What was held long enough."""
        found: list[Event] = []
        for task_id, each in list(self._holding.items()):
            if each.held is not None and now >= each.at + SECONDS:
                found.append(each.held)
                each.at, each.held = now, None
                del self._holding[task_id]
        return found

    @property
    def next_at(self) -> float | None:
        """When the first of those that are held is due."""
        return min((each.at + SECONDS for each in self._holding.values()), default=None)
