"""What a server offers and what was used, on the wire."""

from datetime import datetime

from pydantic import JsonValue

from outlast.wire.forms import Answer
from outlast.wire.turn import UsageAnswer


class AgentAnswer(Answer):
    name: str
    models: list[str]


class ToolAnswer(Answer):
    """A tool of an agent, with what Outlast was told about it."""

    agent: str
    name: str
    description: str | None
    parameters: dict[str, JsonValue]
    hints: dict[str, JsonValue]


class PeriodAnswer(UsageAnswer):
    """Money is told on a single-user server and to admins; others see `percent` of their limit."""

    unpriced_requests: int


class UsageReportAnswer(Answer):
    today: PeriodAnswer
    week: PeriodAnswer
    limit_microdollars: int | None
    percent: float | None
    resets_at: datetime
