"""What comes with a message: the page it was written on, and files."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Context:
    """Where the user is while writing; shown to the model as data."""

    content: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that belongs to a message. It is kept, and the model is told its id and name."""

    name: str
    data: bytes
    media_type: str = "application/octet-stream"
