"""What a turn came to. `events/views/turn_fold.py` folds it from the turn's events."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from outlast.ids import TurnId

OutcomeState = Literal["queued", "running", "completed", "failed", "stopped"]


@dataclass(slots=True)
class CallOutcome:
    """One tool call of a turn. `outcome` is None while it runs."""

    call_id: str
    tool: str
    args: Any = None
    outcome: str | None = None
    result: Any = None


@dataclass(slots=True)
class Usage:
    """Tokens and money of a turn. `cost_microdollars` is None when it is not known, never zero instead."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_microdollars: int | None = 0

    def add(self, data: Mapping[str, Any]) -> None:
        """What one model request used, or, where their number stands in it, several."""
        self.requests += _counted(data, "requests", 1)
        self.input_tokens += _counted(data, "input_tokens")
        self.output_tokens += _counted(data, "output_tokens")
        self.cache_read_tokens += _counted(data, "cache_read_tokens")
        self.cache_write_tokens += _counted(data, "cache_write_tokens")
        cost = data.get("cost_microdollars")
        if type(cost) is not int or self.cost_microdollars is None:
            self.cost_microdollars = None
        else:
            self.cost_microdollars += cost


def _counted(data: Mapping[str, Any], name: str, default: int = 0) -> int:
    """What is no number counts nothing."""
    found = data.get(name, default)
    return found if type(found) is int else 0


@dataclass(slots=True)
class Outcome:
    """What a turn came to. `output` is the agent's validated output; `text` what the model said last."""

    turn_id: TurnId | None = None
    state: OutcomeState = "queued"
    text: str = ""
    reasoning: str = ""
    output: Any = None
    calls: list[CallOutcome] = field(default_factory=list[CallOutcome])
    usage: Usage = field(default_factory=Usage)
    error: dict[str, Any] | None = None
    attempt: int = 0
    no_worker_for: str | None = None
    """The agent for which the turn waits, while no worker is there that has it."""

    @property
    def is_over(self) -> bool:
        return self.state in ("completed", "failed", "stopped")
