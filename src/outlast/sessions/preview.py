"""The first words of a session's first message: they tell sessions apart that have no title."""

from collections.abc import Iterable

from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

LONGEST = 80


def of_text(text: str) -> str:
    """In one line; what is left out is marked."""
    line = " ".join(text.strip()[: LONGEST * 2].split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def of_history(messages: Iterable[ModelMessage]) -> str | None:
    parts = (part for each in messages if isinstance(each, ModelRequest) for part in each.parts)
    said = (_text(part) for part in parts if isinstance(part, UserPromptPart))
    return next((of_text(each) for each in said if each.strip()), None)


def _text(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        return part.content
    return next((each for each in part.content if isinstance(each, str)), "")
