"""Questions to a message history, for scripts that decide by it and for assertions."""

from collections.abc import Iterator, Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    TextContent,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)


def texts_seen(messages: Sequence[ModelMessage]) -> list[str]:
    """The text of every user prompt, oldest first; a prompt without text counts as an empty one."""
    return [user_text(part.content) for part in request_parts(messages) if isinstance(part, UserPromptPart)]


def last_user_text(messages: Sequence[ModelMessage]) -> str:
    """The text of the newest user prompt; empty when there is none."""
    texts = texts_seen(messages)
    return texts[-1] if texts else ""


def tool_returns(messages: Sequence[ModelMessage]) -> dict[str, object]:
    """What each tool call got back, by call id: results, failures and requests to retry alike.

    A call answered twice shows its newer answer.
    """
    return {part.tool_call_id: part.content for part in request_parts(messages) if isinstance(part, ToolReturnPart)}


def request_parts(messages: Sequence[ModelMessage]) -> Iterator[ModelRequestPart]:
    """All parts that were sent to the model, in order."""
    for message in messages:
        if isinstance(message, ModelRequest):
            yield from message.parts


def user_text(content: str | Sequence[UserContent]) -> str:
    """The words of a prompt; images and files are left out."""
    if isinstance(content, str):
        return content
    words = (item.content if isinstance(item, TextContent) else item for item in content)
    return "\n".join(word for word in words if isinstance(word, str))
