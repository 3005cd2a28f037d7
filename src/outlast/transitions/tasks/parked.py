"""Why a call goes on without its turn, and how long it had run by then: kept with its task, and told."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

from outlast.clock import in_words

Reason = Literal["budget", "steering", "question", "stop"]
"""Why a call goes on without its turn: past its budget, a person waits to be heard, it asks, or the turn has ended."""

_WHY: Mapping[str, str] = {
    "budget": "past its budget",
    "steering": "because a new message came",
    "question": "because it asked a question",
    "stop": "because its turn ended",
}


def facts_of(reason: Reason, ran: timedelta) -> dict[str, Any]:
    """What is kept with the task: why it is one, and how long its call had run by then."""
    return {"reason": reason, "ran_seconds": round(ran.total_seconds(), 3)}


def why_parked(facts: Mapping[str, Any]) -> str:
    """For the wake: when and why the call went on by itself."""
    return f"it was parked after {ran(facts)}, {_WHY[facts['reason']]}"


def ran(facts: Mapping[str, Any]) -> str:
    """For how long, in words."""
    return in_words(timedelta(seconds=facts["ran_seconds"]))
