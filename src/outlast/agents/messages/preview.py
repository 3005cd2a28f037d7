"""The first words that a person said in a history."""

from collections.abc import Iterable

from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

from outlast.transitions.sessions.preview import of_text


def of_history(messages: Iterable[ModelMessage]) -> str | None:
    parts = (part for each in messages if isinstance(each, ModelRequest) for part in each.parts)
    said = (_text(part) for part in parts if isinstance(part, UserPromptPart))
    return next((shown for each in said if (shown := of_text(each)) is not None), None)


def _text(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        return part.content
    return next((each for each in part.content if isinstance(each, str)), "")
