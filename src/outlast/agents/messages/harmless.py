"""Parts of a request that tools, validators or other people's documents filled: nothing in them is the runtime's."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from pydantic_ai.messages import RetryFeedbackPart, TextContent, ToolReturnPart, UserPromptPart

from outlast.values.escape import escape, escape_whole

PartT = TypeVar("PartT")


def harmless(part: PartT) -> PartT:
    """The part without the runtime's own tags, also where one is split over neighbouring texts."""
    if not isinstance(part, ToolReturnPart | RetryFeedbackPart | UserPromptPart):
        return part
    before = cast(Any, part).content
    content = harmless_content(before)
    return cast(PartT, part if content is before else replace(cast(Any, part), content=content))


def harmless_content(content: Any) -> Any:
    """Texts that stand beside each other are read as one by the model; those deeper down have JSON around them."""
    if isinstance(content, list | tuple):
        items = cast(Sequence[Any], content)
        clean = [_item(each) for each in items]
        return items if _are_same(clean, items) else clean
    return _item(content)


def _item(content: Any) -> Any:
    if isinstance(content, str):
        return escape_whole(content)
    if isinstance(content, TextContent):
        return replace(content, content=escape_whole(content.content))
    return _deep(content)


def _deep(value: Any) -> Any:
    """The same object where nothing was to do, which is nearly always."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, dict):
        fields = cast(dict[Any, Any], value)
        clean = {_deep(name): _deep(each) for name, each in fields.items()}
        is_same = _are_same([*clean], [*fields]) and _are_same([*clean.values()], [*fields.values()])
        return fields if is_same else clean
    if isinstance(value, list):
        items = cast(list[Any], value)
        copies = [_deep(each) for each in items]
        return items if _are_same(copies, items) else copies
    return value


def _are_same(these: Sequence[Any], those: Sequence[Any]) -> bool:
    return len(these) == len(those) and all(one is other for one, other in zip(these, those, strict=True))
