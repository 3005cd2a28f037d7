"""Webhooks on the wire: where an owner is told of ends and needs, and what became of each message."""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field, JsonValue

from outlast.wire.forms import Answer, Body

WebhookType = Literal[
    "turn.completed", "turn.failed", "turn.stopped", "task.ended", "request.opened", "session.flagged"
]


class WebhookBody(Body):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"url": "https://example.org/outlast", "types": ["turn.failed", "task.ended"]}]}
    )

    url: str = Field(max_length=2_000, description="Where messages are sent, with POST. Redirects are not followed.")
    types: list[WebhookType] | None = Field(default=None, description="What it is told of; everything if left out.")
    is_for_all: bool = Field(default=False, description="Of all owners; for admins.")


class WebhookChange(Body):
    url: str = Field(default="", max_length=2_000)
    types: list[WebhookType] | None = None
    is_active: bool = True


class WebhookAnswer(Answer):
    """Where an owner is told of ends and needs. Its secret is shown when it is made, and never again."""

    id: str
    url: str
    types: list[str] | None = Field(description="Null: everything.")
    is_for_all: bool
    state: Literal["active", "off"]
    off_reason: str | None = Field(description="Why it is told nothing, if it is off.")
    failing_since: datetime | None = Field(description="Since when nothing has arrived there; off after five days.")
    created_at: datetime
    updated_at: datetime


class NewWebhookAnswer(WebhookAnswer):
    secret: str = Field(repr=False, description="Verify messages with it, as standardwebhooks.com says. Keep it now.")


class AttemptAnswer(Answer):
    at: datetime
    status: int | None
    error: str | None
    milliseconds: int


class DeliveryAnswer(Answer):
    """A message to a webhook. Its `id` is that of the header `webhook-id`, the same over all tries."""

    id: str
    webhook_id: str
    type: str
    told: dict[str, JsonValue] = Field(description="The `data` of the message: ids, states and times only.")
    at: datetime
    state: Literal["pending", "delivered", "failed"]
    attempts: int
    due_at: datetime = Field(description="When it is tried next, while it is pending.")
    ended_at: datetime | None
    status: int | None = Field(description="What was answered last.")
    error: str | None
    log: list[AttemptAnswer] = Field(description="The last tries.")
