"""The limits of a turn, as plain values."""

from dataclasses import dataclass
from datetime import timedelta

from outlast.calls.hook import CallPolicy


@dataclass(frozen=True, slots=True)
class LoopPolicy:
    """`longest`: how long a turn may run. `most_cost`: what it may cost, in microdollars.

    `steer_parks_after`: how long running calls may keep a person's message waiting before they are parked.
    """

    coalesce: timedelta
    idle_timeout: timedelta
    model_retries: int
    model_backoff: timedelta
    max_requests: int
    calls: CallPolicy
    steer_parks_after: timedelta
    context_window: int | None
    compact_above: float
    history_window: int | None
    longest: timedelta
    most_cost: int | None
