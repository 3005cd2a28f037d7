"""A session on the wire."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, JsonValue

from outlast.tool_hints import UNSET, Unset
from outlast.wire.constraints import Binding, Permissions, PermissionsAnswer
from outlast.wire.forms import SESSION_ID, Answer, Body


def seconds_of(budget: Any) -> Any:
    """A budget as the library has it, for the wire."""
    if budget is UNSET:
        return "default"
    return budget.total_seconds() if isinstance(budget, timedelta) else budget


Budget = Annotated[
    Annotated[float, Field(ge=0, le=366 * 86_400)] | Literal["default"] | None, BeforeValidator(seconds_of)
]
"""Seconds; `default`: as the server says; null: none, calls are waited for."""


def budget_of(given: float | str | None) -> timedelta | Unset | None:
    if given == "default":
        return UNSET
    return None if given is None else timedelta(seconds=float(given))


class SessionBody(Body):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"title": "Trip to Oslo", "metadata": {"team": "travel"}}]}
    )

    agent: str | None = Field(default=None, description="Which agent; the server's first one if left out.")
    model: str | None = Field(default=None, description="A model of the server's allow-list.")
    title: str | None = Field(default=None, min_length=1, max_length=1_000)
    metadata: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    external_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="Your own name for it: found again instead of made twice.",
    )
    budget_seconds: Budget = Field(
        default="default",
        description="How long its calls may take before they go on in the background; null: they are waited for.",
    )
    permissions: Permissions | None = None
    is_dry_run: bool = Field(default=False, description="Tools that change things only say what they would do.")
    binding: Binding | None = Field(
        default=None, description="The resource that it is about: the session for it is found again."
    )


class SessionChange(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"title": "Trip to Bergen"}]})

    title: str | None = Field(default=None, min_length=1, max_length=1_000)
    metadata: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    model: str | None = None
    agent: str = Field(
        default="",
        min_length=1,
        max_length=500,
        description="The agent of its next turns; refused while a turn runs or waits.",
    )
    is_archived: bool = False
    permissions: Permissions | None = None
    is_dry_run: bool = False
    read_to: int = Field(default=0, ge=0, lt=2**63, description="The number of the last event that was seen.")


class ForkBody(Body):
    at: int | None = Field(default=None, ge=0, lt=2**31, description="The last message to take along; all if left out.")
    title: str | None = Field(default=None, min_length=1, max_length=1_000)


class InterruptedCall(Answer):
    call_id: str
    tool: str
    turn_id: str
    at: datetime


class LastTurnAnswer(Answer):
    """How a turn ended."""

    id: str
    state: Literal["completed", "failed", "stopped"]
    ended_at: datetime
    error: dict[str, JsonValue] | None = Field(description="Of one that failed: its `kind` and a `message` for people.")
    reason: str | None = Field(description="Of one that was stopped: why.")


class CountsAnswer(Answer):
    """How much is open in a session."""

    open_tasks: int = 0
    awaiting_input: int = Field(default=0, description="Of the open tasks: those that wait for somebody.")
    waiting_messages: int = 0


TitleFrom = Literal["person", "model", "message"]


class SessionAnswer(Answer):
    """A conversation that outlives processes."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": SESSION_ID,
                    "title": "Trip to Oslo",
                    "title_from": "person",
                    "preview": "Which train takes me to Oslo on Friday?",
                    "agent": "travel",
                    "model": None,
                    "state": "idle",
                    "no_worker_for": None,
                    "turn_id": None,
                    "interrupted_calls": [],
                    "is_held": False,
                    "is_archived": False,
                    "is_unread": False,
                    "read_to": 1,
                    "last_turn": None,
                    "counts": {"open_tasks": 0, "awaiting_input": 0, "waiting_messages": 0},
                    "external_id": None,
                    "metadata": {"team": "travel"},
                    "budget_seconds": "default",
                    "permissions": {"allow": None, "deny": ["pay(amount>100)"], "always": []},
                    "is_dry_run": False,
                    "binding": None,
                    "parent_id": None,
                    "last_event": 1,
                    "created_at": "2026-11-15T12:00:00Z",
                    "updated_at": "2026-11-15T12:00:00Z",
                }
            ]
        }
    )

    id: str
    title: str | None = Field(description="As a person called it, else the first words of its first message.")
    title_from: TitleFrom | None = Field(
        default=None,
        description="`person`: somebody set the title; `model`: one made it; `message`: it is how the first message "
        "begins.",
    )
    preview: str | None = Field(description="The first words of its first message, for lists, whatever it is called.")
    agent: str
    model: str | None
    state: Literal["idle", "queued", "running", "held"]
    no_worker_for: str | None = Field(
        description="The agent, when a turn waits because no living worker has it: start one that does."
    )
    turn_id: str | None
    interrupted_calls: list[InterruptedCall] = Field(
        default_factory=list[InterruptedCall],
        description="Calls whose effect nobody knows, until somebody settles them.",
    )
    is_held: bool = Field(default=False, description="Nothing starts a turn until somebody sends or resumes.")
    is_archived: bool
    is_unread: bool
    read_to: int = Field(default=0, description="The last event that somebody has seen.")
    last_turn: LastTurnAnswer | None = Field(default=None, description="The last of its turns that is over.")
    counts: CountsAnswer = Field(default_factory=CountsAnswer)
    external_id: str | None
    metadata: dict[str, JsonValue]
    budget_seconds: Budget = Field(
        default="default",
        validation_alias=AliasChoices("budget_seconds", "budget"),
        description="How long its calls may take before they go on in the background; null: they are waited for.",
    )
    permissions: PermissionsAnswer = Field(default_factory=PermissionsAnswer)
    is_dry_run: bool = False
    binding: Binding | None = None
    parent_id: str | None = Field(default=None, description="The session that it works for, if it is a sub-session.")
    last_event: int
    created_at: datetime
    updated_at: datetime
