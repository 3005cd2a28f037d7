"""What a reader is shown of what is stored: no registered secrets, and no money for whoever may not see it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from outlast.events.event import Event
from outlast.events.outcome import Usage
from outlast.store.inputs import Input
from outlast.store.outputs import Piece
from outlast.store.tasks import Task
from outlast.tools.secrets import Secrets

_COST = "cost_microdollars"
_OF_A_TASK = ("title", "spec", "detail", "progress", "result", "error", "late_outcome", "artifacts", "metadata")


@dataclass(frozen=True, slots=True)
class Shown:
    """The eyes of one reader. Money is stored once, for everybody; a tenant's answers leave it out."""

    secrets: Secrets
    is_money_shown: bool = True

    def event(self, event: Event) -> Event:
        """The same event where there is nothing to leave out, which is nearly always."""
        data = self.value(event.data)
        if not self.is_money_shown:
            data = self._without_money(data)
        return event if data is event.data else replace(event, data=data)

    def _without_money(self, data: dict[str, Any]) -> dict[str, Any]:
        if "usage" in data:
            return {**data, "usage": self.spent(data["usage"])}
        if "usage" in data.get("task", ()):
            return {**data, "task": {**data["task"], "usage": self.spent(data["task"]["usage"])}}
        return data

    def value(self, value: Any) -> Any:
        return self.secrets.mask(value)

    def spent(self, usage: dict[str, Any]) -> dict[str, Any]:
        """Tokens of a response or a turn, as they are stored with their cost."""
        return usage if self.is_money_shown else _without(usage, lambda name: name == _COST)

    def usage(self, usage: Usage) -> Usage:
        return usage if self.is_money_shown else replace(usage, cost_microdollars=None)

    def message(self, message: dict[str, Any]) -> dict[str, Any]:
        """A stored message: some providers say in it what it cost."""
        masked = self.value(message)
        if self.is_money_shown:
            return masked
        told: dict[str, Any] = masked.get("provider_details") or {}
        kept = _without(told, lambda name: "cost" in name.lower())
        return masked if kept == told else {**masked, "provider_details": kept or None}

    def input(self, given: Input) -> Input:
        return (
            given if self.secrets.is_empty else replace(given, text=self.value(given.text), body=self.value(given.body))
        )

    def task(self, task: Task) -> Task:
        if task.usage is not None and not self.is_money_shown:
            task = replace(task, usage={**task.usage, _COST: None})
        if self.secrets.is_empty:
            return task
        return replace(task, **{name: self.value(getattr(task, name)) for name in _OF_A_TASK})

    def piece(self, piece: Piece) -> Piece:
        return replace(piece, text=self.value(piece.text))


def _without(fields: dict[str, Any], is_left_out: Callable[[str], bool]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if not is_left_out(name)}
