"""The end of a turn that did not work out, in words for people, and whether trying again can help."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from outlast.clock import in_words

CRASH_LOOP = "crash_loop"


@dataclass(eq=False)
class Failure(Exception):
    """The end of a turn that did not work out."""

    kind: str
    message: str
    is_retryable: bool = True
    reference: str | None = None

    @property
    def data(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "message": self.message,
            "is_retryable": self.is_retryable,
            "reference": self.reference,
        }


def idle(seconds: float) -> Failure:
    return Failure("idle_timeout", f"The model sent nothing for {seconds:g} seconds. Retry the turn.")


def turn_limit(requests: int) -> Failure:
    return Failure("turn_limit", f"The turn made {requests} model requests, its limit. Retry it to continue.")


def too_long(limit: timedelta) -> Failure:
    return Failure("turn_limit", f"The turn has run for {in_words(limit)}, its limit. Retry it to continue.")


def too_dear() -> Failure:
    """How much that is, is not for everybody."""
    return Failure("turn_limit", "The turn has cost as much as one may. Retry it to continue.")


def crash_loop(claims: int) -> Failure:
    return Failure(
        CRASH_LOOP,
        f"The process ended {claims} times while this turn ran, so it is not tried again by itself. "
        "Find out what ends the process, then retry the turn.",
    )
