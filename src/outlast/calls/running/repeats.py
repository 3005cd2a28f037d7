"""Calls of one turn that have the same id: some providers count their calls anew with each response."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from pydantic_ai.messages import ToolCallPart

from outlast.store.repositories.stored_task import REPEAT


class Repeats:
    """Counted from the turn's committed responses, so that each attempt of it counts the same."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()

    def count(self, calls: Iterable[ToolCallPart]) -> None:
        """Of one response, in order."""
        self._asked.update({each.tool_call_id for each in calls})

    def of(self, call_id: str) -> int:
        """How many calls with this id there were before the one of the last response."""
        return max(self._asked[call_id] - 1, 0)

    def kept(self, call_id: str) -> dict[str, Any]:
        """The same in the spec of a task that the call becomes; nothing for the first."""
        repeat = self.of(call_id)
        return {REPEAT: repeat} if repeat else {}
