"""Files of messages that a model cannot take: words stand in their places, so that its request does not fail."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext


def sendable(request: ModelRequestContext) -> ModelRequestContext:
    """The request as this model can take it; what tools return pydantic-ai itself looks after."""
    if not any(map(_has_files, request.messages)):
        return request
    profile = cast(dict[str, Any], request.model.profile)
    messages = [_fitted(each, profile) if _has_files(each) else each for each in request.messages]
    is_same = all(one is other for one, other in zip(messages, request.messages, strict=True))
    return request if is_same else replace(request, messages=messages)


def _has_files(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(
        isinstance(part, UserPromptPart) and not isinstance(part.content, str) for part in message.parts
    )


def _fitted(message: ModelMessage, profile: dict[str, Any]) -> ModelMessage:
    parts: list[ModelRequestPart] = []
    for part in cast(ModelRequest, message).parts:
        if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
            fitted = [_instead(each) if _is_refused(each, profile) else each for each in part.content]
            is_same = all(one is other for one, other in zip(fitted, part.content, strict=True))
            parts.append(part if is_same else replace(part, content=cast(Sequence[UserContent], fitted)))
        else:
            parts.append(part)
    is_same = all(one is other for one, other in zip(parts, cast(ModelRequest, message).parts, strict=True))
    return message if is_same else replace(cast(ModelRequest, message), parts=parts)


def _is_refused(content: UserContent, profile: dict[str, Any]) -> bool:
    if not isinstance(content, BinaryContent):
        return False
    if content.is_image:
        return not profile.get("supports_image_input", True)
    if content.is_document:
        kinds = profile.get("supported_document_media_types")
        is_taken = kinds is None or content.media_type in kinds
        return not (profile.get("supports_document_input", True) and is_taken)
    return False


def _instead(content: UserContent) -> str:
    file = cast(BinaryContent, content)
    return f"[a file of {len(file.data):,} bytes was not sent: this model does not take {file.media_type}]"
