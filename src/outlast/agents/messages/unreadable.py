"""Stored messages that cannot be read: the conversation goes on, with words in their places that say so."""

from collections.abc import Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from outlast.calls import outcomes

WORDS = "[This message was stored in a form that cannot be read.]"


def stand_in(kind: str) -> ModelMessage:
    if kind == "request":
        return ModelRequest(parts=[UserPromptPart(WORDS)])
    return ModelResponse(parts=[TextPart(WORDS)])


def joined(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """As providers take it: an answer to a call that is gone is told as words, a call without its answer as unknown."""
    made: list[ModelMessage] = []
    calls: dict[str, ToolCallPart] = {}
    for message in messages:
        if isinstance(message, ModelResponse):
            calls = {part.tool_call_id: part for part in message.parts if isinstance(part, ToolCallPart)}
            made.append(message)
        else:
            made.append(_answering(message, calls))
    return made


def _answering(request: ModelRequest, calls: dict[str, ToolCallPart]) -> ModelRequest:
    for at, part in enumerate(request.parts):
        if isinstance(part, ToolReturnPart) and calls.pop(part.tool_call_id, None) is None:
            parts = [*request.parts]
            parts[at] = UserPromptPart(f"[{part.tool_name}] {part.model_response_str()}")
            request.parts = parts
    if calls and is_stand_in(request):
        told = [
            outcomes.interrupted(each.tool_name, each.tool_call_id, outcomes.MAY_HAVE_RUN) for each in calls.values()
        ]
        request.parts = [*told, *request.parts]
        calls.clear()
    return request


def is_stand_in(message: ModelMessage) -> bool:
    return any(isinstance(part, UserPromptPart | TextPart) and part.content is WORDS for part in message.parts)
