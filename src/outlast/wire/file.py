"""Files on the wire."""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field

from outlast.wire.forms import SESSION_ID, Answer


class FileAnswer(Answer):
    """A file of a session. `GET /v1/files/{id}` gives its content."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": f"fil_{SESSION_ID.removeprefix('ses_')}_{'0' * 64}",
                    "session_id": SESSION_ID,
                    "name": "levels.csv",
                    "media_type": "text/csv",
                    "bytes": 1_240,
                    "origin": "upload",
                    "made_by": "ada",
                    "created_at": "2026-11-18T12:00:00Z",
                }
            ]
        }
    )

    id: str = Field(description="The same for the same content in one session.")
    session_id: str
    name: str
    media_type: str
    bytes: int
    origin: Literal["upload", "message", "tool", "artifact"]
    made_by: str = Field(description="Whoever gave it, or the id of the call that made it.")
    created_at: datetime
