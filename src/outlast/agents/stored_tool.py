"""A tool definition as it is recorded for processes that have not got the agent: as JSON, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import timedelta
from hashlib import sha256
from typing import Any, cast

from pydantic_ai import ToolDefinition
from pydantic_core import to_json

from outlast.tool_hints import KEY, UNSET, Hints, hints_of
from outlast.values import clean

_DURATIONS = frozenset({"budget", "deadline", "progress_deadline"})
_HINTS = frozenset(each.name for each in fields(Hints))


def dump(tool: ToolDefinition) -> dict[str, Any]:
    """What is in its metadata beside hints is kept as far as it is JSON."""
    metadata = {name: value for name, value in (tool.metadata or {}).items() if name != KEY}
    return clean.value(
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters_json_schema,
            "kind": tool.kind,
            "timeout": tool.timeout,
            "metadata": metadata,
            "hints": shown_hints(tool),
        }
    )


def load(stored: Mapping[str, Any]) -> ToolDefinition:
    return ToolDefinition(
        name=stored["name"],
        description=stored.get("description"),
        parameters_json_schema=stored["parameters"],
        kind=stored.get("kind") or "function",
        timeout=stored.get("timeout"),
        metadata={**(stored.get("metadata") or {}), KEY: _hints(stored.get("hints") or {})},
    )


def shown_hints(tool: ToolDefinition) -> dict[str, Any]:
    """What the tool says about itself, durations in seconds; what it leaves open is left out."""
    said = asdict(hints_of(tool.metadata))
    return {
        name: _shown(value)
        for name, value in said.items()
        if value is not UNSET and (value is not None or name == "budget")
    }


def _shown(value: Any) -> Any:
    """A function that says it of a call says it of some: whoever has not got it takes the careful side."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, tuple):
        return list(cast(tuple[Any, ...], value))
    if isinstance(value, dict):
        words = cast(dict[str, Any], value)
        return True if any(callable(each) for each in words.values()) else words
    return True if callable(value) else value


def version_of(tools: Sequence[ToolDefinition], models: Sequence[str]) -> str:
    """Changes when the tools that an agent declares do, or its models."""
    said = [sorted((dump(each) for each in tools), key=lambda each: each["name"]), sorted(models)]
    return sha256(to_json(said)).hexdigest()[:12]


def _hints(stored: Mapping[str, Any]) -> Hints:
    """What a later version may have said beside is left out."""
    return Hints(**{name: _hint(name, value) for name, value in stored.items() if name in _HINTS})


def _hint(name: str, value: Any) -> Any:
    return timedelta(seconds=value) if name in _DURATIONS and value is not None else value
