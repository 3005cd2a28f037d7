"""How a run of the agent ends: by itself, or between two of its steps, where nothing of it is under way."""

from enum import StrEnum


class Step(StrEnum):
    """How one run of the agent left the turn."""

    ENDED = "ended"
    GOES_ON = "goes_on"
    NOTHING_TO_DO = "nothing_to_do"


class HandOver(Exception):
    """The worker is leaving: the turn is at a boundary and can go on elsewhere."""


class StopAsked(Exception):
    """The turn was asked to stop. What waits is not for this turn: an interrupting message starts the next one."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
