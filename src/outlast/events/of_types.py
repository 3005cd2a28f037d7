"""Which events a reader wants who named their types."""

from collections.abc import Iterable

from outlast.events.event import Event
from outlast.events.types import EventType


class OfTypes:
    """Those of these types; all if none is named. What is said to one reader, and the end of a session, always come."""

    def __init__(self, types: Iterable[str] = ()) -> None:
        self._types = frozenset(types)

    def __call__(self, event: Event) -> bool:
        return (
            not self._types or event.type in self._types or event.is_control or event.type == EventType.SESSION_DELETED
        )
