"""The usage of a run, which its tools share: what each call adds to it is also known by call.

A tool adds to it by running another agent with `usage=ctx.usage`. A call may outlive its run, and calls run side by
side, so the difference between two moments of a run says nothing about a call.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pydantic_ai import RunUsage
from pydantic_ai.usage import RequestUsage

from outlast.calls.call import OWN_COST, RunningCall, current_call
from outlast.store.repositories.spending import Spent, countable

_UNPRICED = "unpriced"
_COUNTED = ("requests", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost")


@dataclass(slots=True, eq=False)
class Uses:
    """What code that belongs to no call, such as an output function, adds to the usage of its run."""

    shared_usage: object
    used: dict[str, Any] = field(default_factory=dict[str, Any])

    @contextmanager
    def counting(self) -> Generator[None]:
        """What is added in this block, and in what it starts, counts as used by it."""
        token = _current_uses.set(self)
        try:
            yield
        finally:
            _current_uses.reset(token)


_current_uses: ContextVar[Uses | None] = ContextVar("outlast_uses", default=None)


class SharedUsage(RunUsage):
    """As pydantic-ai's own, for whoever reads it: limits of other agents see all that the run has used so far."""

    def __setattr__(self, name: str, value: Any) -> None:
        call = self._adding()
        if call is not None and name in _COUNTED:
            _add(call, name, value, before=getattr(self, name, None))
        super().__setattr__(name, value)

    def incr(self, incr_usage: RunUsage | RequestUsage) -> None:
        call = self._adding()
        if call is not None and incr_usage.cost is None:
            call.used[_UNPRICED] = call.used.get(_UNPRICED, 0) + incr_usage.requests
        super().incr(incr_usage)

    def __copy__(self) -> RunUsage:
        """What is added to a copy, as to find out what would be, nobody has used."""
        plain = RunUsage(details=dict(self.details))
        plain.__dict__.update({name: value for name, value in self.__dict__.items() if name != "details"})
        return plain

    def __deepcopy__(self, memo: dict[int, Any]) -> RunUsage:
        return copy(self)

    def __eq__(self, value: object, /) -> bool:
        return copy(self) == (copy(value) if isinstance(value, SharedUsage) else value)

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # as of pydantic-ai's own

    def _adding(self) -> RunningCall | Uses | None:
        """The call of this run whose tool is running here, or its output function, if any."""
        for each in (current_call.get(), _current_uses.get()):
            if each is not None and each.shared_usage is self:
                return each
        return None


def take_used(call: RunningCall | Uses) -> Spent | None:
    """What its tool has used since this was last asked; None: nothing. Whoever asks counts it."""
    if not call.used:
        return None
    used, call.used = call.used, {}
    return Spent(
        requests=countable(used.get("requests", 0)),
        unpriced_requests=countable(used.get(_UNPRICED, 0)),
        input_tokens=countable(used.get("input_tokens", 0)),
        output_tokens=countable(used.get("output_tokens", 0)),
        cache_read_tokens=countable(used.get("cache_read_tokens", 0)),
        cache_write_tokens=countable(used.get("cache_write_tokens", 0)),
        known_microdollars=countable(used.get("cost", 0) * 1_000_000 + used.get(OWN_COST, 0)),
    )


def _add(call: RunningCall | Uses, name: str, value: Any, *, before: Any) -> None:
    """A model may tell anything as its usage: what is no number counts for nothing."""
    if isinstance(value, int | float | Decimal):
        added = value - before if before else value
        if added:
            call.used[name] = call.used.get(name, 0) + added
