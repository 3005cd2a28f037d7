"""What a server offers and what was used, on the wire."""

from datetime import datetime

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
