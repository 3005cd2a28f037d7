"""Files in what a tool gives: told in words where only JSON is kept, and kept whole beside it for the model."""

from collections.abc import Sequence
from functools import cache
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic_ai import ToolReturn
from pydantic_ai.messages import BinaryContent, FileUrl, TextContent, UploadedFile, UserContent

_FILES = (BinaryContent, FileUrl, UploadedFile)


@cache
def content_type() -> TypeAdapter[list[UserContent]]:
    return TypeAdapter(list[UserContent])


def has_files(value: Any) -> bool:
    """Whether there is more in it than JSON: files anywhere, or what a tool tells the model beside its value."""
    if isinstance(value, dict):
        return any(has_files(each) for each in cast(dict[str, Any], value).values())
    if isinstance(value, list):
        return any(has_files(each) for each in cast(list[Any], value))
    return isinstance(value, ToolReturn | BinaryContent | FileUrl)


def separate(value: Any) -> tuple[Any, list[UserContent]]:
    """The value with words in the places of its files; and the files, with what the tool tells beside its value."""
    content: list[UserContent] = []
    plain = _told(value.return_value if isinstance(value, ToolReturn) else value, content)
    if isinstance(value, ToolReturn):
        beside = cast(ToolReturn[Any], value).content
        given: Sequence[UserContent] = [beside] if isinstance(beside, str) else beside or []
        content += [each.content if isinstance(each, TextContent) else each for each in given if _is_told(each)]
    return plain, content


def _is_told(each: UserContent) -> bool:
    return isinstance(each, str | TextContent | BinaryContent | FileUrl | UploadedFile)


def _told(value: Any, content: list[UserContent]) -> Any:
    if isinstance(value, BinaryContent | FileUrl):
        content.append(cast(UserContent, value))
        number = sum(isinstance(each, _FILES) for each in content)
        return f"[file {number}: {_words(value)}]"
    if isinstance(value, list):
        return [_told(each, content) for each in cast(list[Any], value)]
    if isinstance(value, dict):
        return {name: _told(each, content) for name, each in cast(dict[str, Any], value).items()}
    return value


def _words(file: BinaryContent | FileUrl) -> str:
    return f"{file.media_type}, {len(file.data)} bytes" if isinstance(file, BinaryContent) else file.url
