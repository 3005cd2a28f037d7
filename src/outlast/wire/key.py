"""API keys on the wire."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from outlast.wire.forms import Answer, Body


class KeyBody(Body):
    owner_id: str = Field(min_length=1, max_length=200)
    name: str = Field(min_length=1, max_length=200)
    role: Literal["user", "admin"] = "user"
    scope: Literal["read", "propose", "write"] = "write"
    expires_in_days: float | None = Field(default=None, gt=0, le=36_500)


class KeyAnswer(Answer):
    id: str
    owner_id: str
    name: str
    role: str
    scope: str
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    revoked_at: datetime | None
    made_with: str | None = Field(
        default=None, description="The key that it was made with, as a cookie is, and with which it ends."
    )


class NewKeyAnswer(KeyAnswer):
    key: str = Field(description="Shown now and never again.")
