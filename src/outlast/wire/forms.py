"""The forms that everything on the wire has: bodies that clients send, answers, and pages of answers."""

from typing import Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

ItemT = TypeVar("ItemT")
SESSION_ID = "ses_01jy8fk2v6h3r9x4q0z5w7t1na"
TURN_ID = "trn_01jy8fk9p2s4u6w8y0a1c3e5gh"
INPUT_ID = "inp_01jy8fk8m1n3p5r7t9v1x3z5bd"


class Body(BaseModel):
    """What a client sends: nothing unknown, so that a misspelt name is told and not ignored."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Answer(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def of(cls, thing: object) -> Self:
        """The answer about a thing of the runtime that has these attributes."""
        return cls.model_validate(thing, from_attributes=True)


class ListOf(BaseModel, Generic[ItemT]):
    """A page. `next` is the cursor of the next one, null on the last."""

    items: list[ItemT]
    next: str | None = None


class Said(Body):
    """Who says something. The name of the key is always told with it."""

    by: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Who says so, beside the name of the key; that name alone if left out.",
    )

    def said_by(self, key: str) -> str:
        """Only the key is proven; the rest is what its holder says."""
        return key if self.by is None else f"{self.by} (key {key})"
