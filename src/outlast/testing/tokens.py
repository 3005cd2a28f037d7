"""Token numbers of a plausible size. They depend on the text alone, so they are the same in every run."""

from collections.abc import Sequence

from pydantic_ai.messages import (
    ModelMessage,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from outlast.testing.history import user_text

CHARACTERS_PER_TOKEN = 4
REQUEST_OVERHEAD = 50


def tokens_in(characters: int) -> int:
    """A text's tokens, rounded up: no text is free."""
    return -(-characters // CHARACTERS_PER_TOKEN)


def input_tokens(messages: Sequence[ModelMessage]) -> int:
    """The size of a request: all that is said in its messages, and a fixed part for the rest."""
    return REQUEST_OVERHEAD + tokens_in(sum(_characters(part) for each in messages for part in each.parts))


def _characters(part: object) -> int:
    if isinstance(part, TextPart | ThinkingPart | SystemPromptPart):
        return len(part.content)
    if isinstance(part, UserPromptPart):
        return len(user_text(part.content))
    if isinstance(part, ToolCallPart):
        return len(part.args_as_json_str())
    if isinstance(part, ToolReturnPart):
        return len(part.model_response_str())
    return 0
