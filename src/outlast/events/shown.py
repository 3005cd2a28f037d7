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


def in_words(value: Any) -> Any:
    """The same for people: `The first words… (100,000 bytes)` in its place."""
    if isinstance(value, list):
        return [in_words(each) for each in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, Any], value)
    kept = fields.get("$file")
    if isinstance(kept, dict):
        stored = cast(dict[str, Any], kept)
        begins = f"{stored['preview']}… " if stored.get("preview") else ""
        return f"{begins}({stored.get('bytes', 0):,} bytes)"
    if isinstance(fields.get("$preview"), str):
        begins = f"{fields['$preview']}… " if fields["$preview"] else ""
        return f"{begins}({fields.get('bytes') or 0:,} bytes)"
    return {name: in_words(each) for name, each in fields.items()}


def is_whole(value: Any) -> bool:
    """Whether a stored value is as it was given: none of it lies in the file store, and no name had to be escaped."""
    if isinstance(value, list):
        return all(is_whole(each) for each in cast(list[Any], value))
    if not isinstance(value, dict):
        return True
    fields = cast(dict[str, Any], value)
    return not any(name.startswith("$") for name in fields) and all(is_whole(each) for each in fields.values())


def is_text(output: Any) -> bool:
    """Whether an output is a text, also one that lies in the file store."""
    kept = cast(dict[str, Any], output).get("$file") if isinstance(output, dict) else None
    return isinstance(output, str) or (isinstance(kept, dict) and cast(dict[str, Any], kept).get("as") == "text")


def unsaid(output: Any, said: Iterable[str]) -> str | None:
    """A whole output in words, a typed one as JSON; None if there is none, or the model has said just that."""
    texts = (each for each in said if each.strip())
    if output is None or any(_is_same(output, each) for each in texts):
        return None
    return output if isinstance(output, str) else to_json(output).decode()


def _is_same(output: Any, said: str) -> bool:
    if isinstance(output, str):
        return output.split() == said.split()
    try:
        return from_json(said) == output
    except ValueError:
        return False
