"""What a reader is shown of what is stored: no registered secrets, and no money for whoever may not see it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic_ai.messages import ModelMessage

from outlast.agents.messages import history
from outlast.events import foreign
from outlast.events.event import Event
from outlast.events.outcome import Usage
from outlast.store.repositories.inputs import Input
from outlast.store.repositories.outputs import Piece
from outlast.store.repositories.stored_task import Task as StoredTask
from outlast.values.digest import object_of
from outlast.values.foreign import message as of_message
from outlast.values.secrets import Secrets
from outlast.wire.task import Task
from outlast.wire.task_state import TaskState

_COST = "cost_microdollars"
_MONEY = ("cost", "price", "dollars")
_AS_STORED = [each for each in Task.model_fields if each not in ("args", "is_cancel_requested", "no_worker_for")]
_TOLD_BY_PROVIDERS = ("usage", "provider_details")


@dataclass(frozen=True, slots=True)
class Shown:
    """The eyes of one reader. Money is stored once, for everybody; a tenant's answers leave it out."""

    secrets: Secrets
    is_money_shown: bool = True

    def event(self, event: Event) -> Event:
        """The same event where there is nothing to leave out, which is nearly always."""
        data = foreign.masked(event.type, event.data, self.secrets)
        if not self.is_money_shown:
            data = self._without_money(data)
        return event if data is event.data else replace(event, data=data)

    def _without_money(self, data: dict[str, Any]) -> dict[str, Any]:
        if isinstance(data.get("usage"), dict):
            return {**data, "usage": self.spent(data["usage"])}
        task: Any = data.get("task")
        if isinstance(task, dict) and "usage" in task:
            return {**data, "task": self._without_money(cast(dict[str, Any], task))}
        return data

    def value(self, value: Any) -> Any:
        """What a person, a model or a tool wrote."""
        return self.secrets.mask(value)

    def error(self, error: dict[str, Any] | None) -> dict[str, Any] | None:
        """How a turn failed."""
        return foreign.ERROR(self.secrets, error)

    def spent(self, usage: dict[str, Any]) -> dict[str, Any]:
        """Tokens of a response or a turn, as they are stored with their cost."""
        return usage if self.is_money_shown else _without(usage, lambda name: name == _COST)

    def usage(self, usage: Usage) -> Usage:
        return usage if self.is_money_shown else replace(usage, cost_microdollars=None)

    def message(self, message: dict[str, Any]) -> dict[str, Any]:
        """A stored message: pydantic-ai and some providers say in it what it cost."""
        masked = message if self.secrets.is_empty else of_message(self.secrets, message)
        return masked if self.is_money_shown else _unpriced(masked)

    def history(self, message: ModelMessage) -> ModelMessage:
        """A message as pydantic-ai has it."""
        masked = history.masked(message, self.secrets)
        return masked if self.is_money_shown else history.changed(masked, _unpriced)

    def input(self, given: Input) -> Input:
        if self.secrets.is_empty:
            return given
        return replace(given, text=self.value(given.text), body=foreign.BODY_OF_AN_INPUT(self.secrets, given.body))

    def task(self, stored: StoredTask, *, unserved: Collection[str] = ()) -> Task:
        """The view of a task. `unserved`: agents that no living worker has; one that waits for such says so."""
        row = self.stored_task(stored)
        is_unserved = row.state is TaskState.QUEUED and row.agent in unserved
        return Task.model_validate(
            {
                **{name: getattr(row, name) for name in _AS_STORED},
                "args": object_of(row.spec.get("args")),
                "is_cancel_requested": row.cancel_requested_at is not None,
                "no_worker_for": row.agent if is_unserved else None,
            }
        )

    def stored_task(self, task: StoredTask) -> StoredTask:
        if task.usage is not None and not self.is_money_shown:
            task = replace(task, usage={**task.usage, _COST: None})
        if self.secrets.is_empty:
            return task
        shown = {name: place(self.secrets, getattr(task, name)) for name, place in foreign.OF_A_TASK.items()}
        return replace(task, **shown, last_line=self.value(task.last_line))

    def piece(self, piece: Piece) -> Piece:
        return replace(piece, text=self.value(piece.text))


def _unpriced(message: dict[str, Any]) -> dict[str, Any]:
    """A message, a part of it, or a try of its request, without what is named for money."""
    told = {name: _without_prices(message[name]) for name in _TOLD_BY_PROVIDERS if message.get(name)}
    empty: dict[str, Any] = {"provider_details": None}
    told = {name: value or empty.get(name, {}) for name, value in told.items()}
    within = {name: [*map(_unpriced, message[name])] for name in ("parts", "failed_attempts") if message.get(name)}
    return {**message, **told, **within}


def _without_prices(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_prices(each) for each in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    kept = _without(cast(dict[str, Any], value), lambda name: any(each in name.lower() for each in _MONEY))
    return {name: _without_prices(each) for name, each in kept.items()}


def _without(fields: dict[str, Any], is_left_out: Callable[[str], bool]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if not is_left_out(name)}
