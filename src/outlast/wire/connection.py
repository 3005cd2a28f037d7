"""Connections on the wire: never their values."""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field

from outlast.wire.forms import Answer, Body


class ConnectionBody(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"value": "ghp_..."}]})

    value: str = Field(repr=False, description="The credential: 6 characters to 64 KiB. It is never given back.")


class ConnectionAnswer(Answer):
    """An owner's credential for a provider."""

    provider: str
    state: Literal["ready", "unreadable"] = Field(
        description="`unreadable`: no key of the server opens it; set it again."
    )
    created_at: datetime
    updated_at: datetime = Field(description="When its value was set last.")
    used_at: datetime | None = Field(description="About when a tool asked for it last.")


class RekeyedAnswer(Answer):
    moved: int
    unreadable: int = Field(description="So many no key opens: their owners must set them again.")
