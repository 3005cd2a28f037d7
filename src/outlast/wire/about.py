"""What a server offers and what was used, on the wire."""

from datetime import datetime
from typing import Literal

from pydantic import Field, JsonValue

from outlast.wire.forms import Answer
from outlast.wire.turn import UsageAnswer


class AgentAnswer(Answer):
    name: str
    models: list[str]
    version: str | None = Field(
        default=None, description="Changes with its tools and models. Null until a worker has recorded it."
    )
    has_worker: bool = Field(default=True, description="A worker is there that can run it.")


class ToolAnswer(Answer):
    """A tool of an agent, with what Outlast was told about it."""

    agent: str
    name: str
    description: str | None
    parameters: dict[str, JsonValue]
    hints: dict[str, JsonValue]


class PeriodAnswer(UsageAnswer):
    """`cost_microdollars` is null when the cost of a request is not known, or when money is not shown."""

    unpriced_requests: int


class UsageReportAnswer(Answer):
    """Money is shown to admins and on a single-user server; other owners see how much of their limit is used."""

    owner_id: str
    today: PeriodAnswer
    week: PeriodAnswer
    limit_microdollars: int | None
    percent: int | None
    resets_at: datetime
    week_resets_at: datetime
    is_money_shown: bool


class PauseAnswer(Answer):
    """Whether new work is started; if not, who said so and when."""

    is_paused: bool
    by: str | None
    since: datetime | None


class FeaturesAnswer(Answer):
    """What depends on how this server was set up."""

    connections: bool = Field(description="Credentials of providers can be kept: it has an encryption key.")
    public_completions: bool = Field(description="It knows the address under which others complete operations.")


class LimitsAnswer(Answer):
    """What is refused, waits or is cut, so that a page can say so before."""

    max_text: int = Field(description="Characters in one message.")
    max_inbox: int = Field(description="Messages that may wait in one session.")
    max_body_bytes: int
    max_requests_per_minute: int
    max_open_requests: int = Field(description="Of one owner at once, streams included.")
    max_open_tasks_per_session: int
    max_wait_seconds: float = Field(description="How long a request may wait for an end.")
    heartbeat_seconds: float = Field(description="How often an idle stream says that it is alive.")


class MeAnswer(Answer):
    """Who the caller is to this server, and what the server is."""

    owner_id: str
    name: str = Field(description="Of the key, or as the token says; what others are told of who did something.")
    role: Literal["user", "admin"]
    scope: Literal["read", "propose", "write"]
    expires_at: datetime | None = Field(description="When what the caller showed ends. Null: it does not.")
    version: str = Field(description="Of the server.")
    engine: Literal["embedded", "distributed"] = Field(description="One process with a file, or PostgreSQL.")
    now: datetime = Field(description="The server's clock.")
    is_money_shown: bool
    features: FeaturesAnswer
    limits: LimitsAnswer
