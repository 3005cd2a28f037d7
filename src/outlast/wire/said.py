"""Who says something, in the body of a request."""

from pydantic import Field

from outlast.wire.forms import Body


class Said(Body):
    """The name of the key is always told with it."""

    by: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Who says so, beside the name of the key; that name alone if left out.",
    )

    def said_by(self, key: str) -> str:
        """Only the key is proven; the rest is what its holder says."""
        return key if self.by is None else f"{self.by} (key {key})"
