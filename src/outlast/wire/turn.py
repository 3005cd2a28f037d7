"""A turn on the wire: what it came to, and what is asked of it."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue

from outlast.wire.forms import Answer, Body, Said

Until = Literal["turn", "settled"]
"""How long to wait: to the end of the turn, or until nothing that will wake the session is open either."""


class Verdict(StrEnum):
    """What became of a call or a task whose effect nobody knew."""

    WORKED = "worked"
    FAILED = "failed"
    TRY_AGAIN = "try_again"


class CallAnswer(Answer):
    call_id: str
    tool: str
    args: JsonValue
    outcome: str | None
    result: JsonValue


class UsageAnswer(Answer):
    """Tokens and money. `cost_microdollars` is null when it is not known, or when money is not shown."""

    requests: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_microdollars: int | None


class OutcomeAnswer(Answer):
    """What a turn came to, or has come to so far."""

    turn_id: str | None
    state: Literal["queued", "running", "completed", "failed", "stopped"]
    text: str
    reasoning: str
    output: JsonValue
    calls: list[CallAnswer]
    usage: UsageAnswer
    error: dict[str, JsonValue] | None
    attempt: int
    no_worker_for: str | None = Field(description="The agent it waits for, while no worker is there that has it.")
    is_over: bool


class TurnSummary(Answer):
    """A turn in a list."""

    id: str
    origin: str
    state: Literal["queued", "running", "completed", "failed", "stopped"]
    attempt: int
    agent: str
    model: str | None
    first_event: int = Field(description="Where it begins in the log.")
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    error: dict[str, JsonValue] | None
    stop_reason: str | None


class StopBody(Said):
    cascade: bool = Field(default=False, description="Also cancel the session's background tasks.")


class RegenerateBody(Body):
    model: str | None = Field(
        default=None, description="A model of the server's allow-list; that of the answer before if left out."
    )


class TurnAnswer(Answer):
    turn_id: str | None
    state: str


IDLE = TurnAnswer(turn_id=None, state="idle")
"""There is no turn."""


class SettleBody(Said):
    verdict: Verdict
    note: str = Field(default="", max_length=2_000)
