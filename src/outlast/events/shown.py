"""Stored values as people and pages are shown them."""

from collections.abc import Iterable
from typing import Any, cast

from pydantic_core import from_json, to_json


def shown(value: Any) -> Any:
    """A stored value: what lies in the file store is said by its size and beginning."""
    if isinstance(value, list):
        return [shown(each) for each in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, Any], value)
    kept = fields.get("$file")
    if isinstance(kept, dict):
        stored = cast(dict[str, Any], kept)
        return {name: stored[name] for name in ("bytes", "preview") if name in stored}
    return {name: shown(each) for name, each in fields.items()}


def is_text(output: Any) -> bool:
    """Whether an output is a text, also one that lies in the file store."""
    kept = cast(dict[str, Any], output).get("$file") if isinstance(output, dict) else None
    return isinstance(output, str) or (isinstance(kept, dict) and cast(dict[str, Any], kept).get("as") == "text")


def unsaid(output: Any, said: Iterable[str]) -> str | None:
    """An output in words, a typed one as JSON; None if there is none, or the model has said just that."""
    texts = [each for each in said if each.strip()]
    if output is None or any(_is_same(output, each) for each in texts):
        return None
    if isinstance(output, str):
        return output
    if is_text(output):
        return None if texts else output["$file"]["preview"]
    return to_json(shown(output)).decode()


def _is_same(output: Any, said: str) -> bool:
    if isinstance(output, str):
        return output.split() == said.split()
    try:
        return from_json(said) == output
    except ValueError:
        return False
