"""What a turn has used so far: its own requests, and those of agents that its tools and outputs ran."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from outlast.calls.shared_usage import Uses, take_used
from outlast.events.outcome import Usage
from outlast.runs.turns.turn_log import TurnLog
from outlast.store.repositories import spending, turns
from outlast.store.repositories.spending import Spent, stored


@dataclass(slots=True)
class TurnUsage:
    """Counted here at once; the owner pays with the next commit of the turn's log."""

    log: TurnLog
    owner_id: str
    total: Usage = field(default_factory=Usage)
    requests: int = 0
    requests_of_calls: int = 0
    """Those of agents that its tools ran."""

    @property
    def all_requests(self) -> int:
        return self.requests + self.requests_of_calls

    def pay_for_response(self, usage: dict[str, Any]) -> None:
        """One of the turn's own model, which is in `total`."""
        self.log.also(lambda unit: spending.add(unit, self.owner_id, usage))

    def add_spent(self, used: Spent) -> None:
        """What agents used that the turn's own code ran."""
        self.total.add(stored(used))
        self.requests_of_calls += used.requests
        self.log.also(lambda unit: spending.add_spent(unit, self.owner_id, used))

    def take(self, uses: Sequence[Uses]) -> None:
        """The same of output functions and validators, of which some may have failed; each once."""
        for each in uses:
            used = take_used(each)
            if used is not None:
                self.add_spent(used)

    def columns(self, requests: int) -> dict[str, Any]:
        """What the turn's row says of it after so many requests."""
        return {"requests": requests, "usage": turns.encode(stored(self.total))}
