"""What others wrote within the runtime's own objects: only there are registered values masked.

A registered value may be any word, also one that the runtime or pydantic-ai uses itself: names of fields, kinds,
states, ids and instants stay what they are. A place says of one object, or of a list of them, where in it people,
models and tools had their say.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from outlast.values.secrets import Secrets

Place = Callable[[Secrets, Any], Any]
"""Gives a value without registered ones: the same object where it has none."""
_Field = Callable[[str, Any], Any]

_REFERENCE = frozenset({"key", "as", "bytes", "preview"})
_FILE_KINDS = frozenset({"binary", "image-url", "audio-url", "video-url", "document-url", "uploaded-file"})
_OF_A_FILE = frozenset(
    {*("kind", "data", "url", "file_id", "media_type", "identifier"), *("force_download", "provider_name")}
    | {"vendor_metadata"}
)
_SAID_OF_A_FILE = frozenset({"url", "vendor_metadata"})

OWN = frozenset(
    {
        *(
            "kind",
            "part_kind",
            "tool_kind",
            "state",
            "outcome",
            "cause",
            "retry",
            "scope",
            "speaker",
            "granularity",
            "type",
        ),
        *("timestamp", "finish_reason", "on_change", "ttl", "force_download", "format", "media_type", "data"),
        *("id", "tool_call_id", "run_id", "conversation_id", "context_id", "dynamic_ref", "identifier", "file_id"),
        *("document_id", "provider_response_id", "provider_name", "model_name", "model_id", "canonical_system"),
        *("signature", "content_hash", "base_hash", "history_digest", "content_file_digests", "workspace_ref"),
        *("tool_name", "tools_added", "loaded", "settings", "usage"),
    }
)
"""Fields of a message that pydantic-ai or a provider reads again: a star in one of them would end every turn."""
ANYTHING = frozenset({"args", "value", "input", "ctx"})
"""Fields of a message that hold anything: the names in them are somebody's too."""
VALUES = frozenset({"provider_details", "vendor_metadata"})
"""Fields whose names are those of a provider's interface."""
_SAID_IN_SCHEMAS = frozenset({"title", "description", "default", "examples", "enum", "const", "$comment"})
_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
"""Objects of schemas, each under a name of its own."""
_MARK = "outlast_"
"""Names in the metadata of a message begin so that the runtime itself put there."""


def anything(secrets: Secrets, value: Any) -> Any:
    """What others wrote, names included. Of stored files in it, and of references to them, only words are masked."""
    return secrets.mask(value, own=partial(_own, secrets))


def values(secrets: Secrets, value: Any) -> Any:
    """All texts at any depth; names stay."""
    if isinstance(value, dict):
        return _changed(cast(dict[Any, Any], value), lambda _, each: values(secrets, each))
    if isinstance(value, list):
        return _each(cast(list[Any], value), partial(values, secrets))
    return secrets.mask(value)


def fields(**places: Place) -> Place:
    """Of an object, or of each in a list: these, and nothing else of it."""

    def place(secrets: Secrets, value: Any) -> Any:
        if isinstance(value, list):
            return _each(cast(list[Any], value), partial(place, secrets))
        if not isinstance(value, dict):
            return secrets.mask(value)
        given = cast(dict[Any, Any], value)
        known = _own(secrets, given)
        if known is not None:
            return known
        return _changed(given, lambda name, each: places[name](secrets, each) if name in places else each)

    return place


def schema(secrets: Secrets, value: Any) -> Any:
    """Of a JSON Schema its texts and the values in it. Its keywords and the names of fields stay: it needs them."""
    if isinstance(value, list):
        return _each(cast(list[Any], value), partial(schema, secrets))
    if not isinstance(value, dict):
        return value
    return _changed(cast(dict[Any, Any], value), partial(_of_a_schema, secrets))


def _of_a_schema(secrets: Secrets, name: str, value: Any) -> Any:
    if name in _SAID_IN_SCHEMAS:
        return anything(secrets, value)
    if name in _NAMED_SCHEMAS and isinstance(value, dict):
        return _changed(cast(dict[Any, Any], value), lambda _, each: schema(secrets, each))
    return schema(secrets, value)


def message(secrets: Secrets, value: Any) -> Any:
    """A message of pydantic-ai as JSON, one of its parts, or what a prompt consists of."""
    if isinstance(value, list):
        return _each(cast(list[Any], value), partial(message, secrets))
    if not isinstance(value, dict):
        return secrets.mask(value)
    around = cast(dict[Any, Any], value)
    known = _own(secrets, around)
    return _changed(around, partial(_of_a_message, secrets, around)) if known is None else known


def _of_a_message(secrets: Secrets, around: dict[Any, Any], name: str, value: Any) -> Any:
    if name in OWN:
        return value
    if name in VALUES:
        return values(secrets, value)
    if name == "metadata":
        return _metadata(secrets, value)
    is_result = name == "content" and str(around.get("part_kind")).endswith("tool-return")
    if is_result or name in ANYTHING:
        # A tool of pydantic-ai's own kinds: the names in what it takes and gives are pydantic-ai's.
        return (anything if around.get("tool_kind") is None else values)(secrets, value)
    return message(secrets, value)


def _metadata(secrets: Secrets, value: Any) -> Any:
    if not isinstance(value, dict):
        return anything(secrets, value)
    given = cast(dict[Any, Any], value)
    marks = {name: each for name, each in given.items() if str(name).startswith(_MARK)}
    if not marks:
        return anything(secrets, given)
    return {**anything(secrets, {name: each for name, each in given.items() if name not in marks}), **marks}


def _own(secrets: Secrets, given: dict[Any, Any]) -> dict[Any, Any] | None:
    """Of a file, or a reference to one in the file store, what may be shown; None for any other object."""
    stored = given.get("$file")
    if isinstance(stored, dict) and len(given) == 1:
        named = cast(dict[Any, Any], stored)
        if "as" in named and named.keys() <= _REFERENCE:
            shown = _changed(named, lambda name, each: each if name == "as" else secrets.mask(each))
            return given if shown is named else {"$file": shown}
    if given.get("kind") in _FILE_KINDS and "media_type" in given and given.keys() <= _OF_A_FILE:
        return _changed(given, lambda name, each: values(secrets, each) if name in _SAID_OF_A_FILE else each)
    return None


def _changed(given: dict[Any, Any], field: _Field) -> dict[Any, Any]:
    shown = {name: field(name, each) for name, each in given.items()}
    return given if all(shown[name] is each for name, each in given.items()) else shown


def _each(items: list[Any], one: Callable[[Any], Any]) -> list[Any]:
    shown = [one(each) for each in items]
    return items if all(new is old for new, old in zip(shown, items, strict=True)) else shown
