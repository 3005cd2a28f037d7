"""How much work it is to hold a value against a JSON Schema, counted without doing it.

A schema of a few lines may ask for more than anybody has the time for: one that names others twice, which name others
twice, or that finds itself in several of its branches, doubles the work with each level. Counting does not, as the same
part of a schema comes to the same count for the same part of a value.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import unquote

from pydantic_core import to_json

from outlast.errors import InvalidInput
from outlast.permissions.pattern import LARGEST, Pattern

MOST = 2_000_000
"""Looks at a part of a value by a part of a schema: some tenths of a second."""
_MOST_AT_MOST = 5_000_000
"""The same, where they are estimated: in truth they are far fewer."""
_MOST_COUNTED = 100_000
"""Pairs of these that are counted."""
_MOST_PATTERNS = 50
_LOOK = 300
"""Bytes of a pattern that a character is held against in the time of a look."""
_LISTS = ("allOf", "anyOf", "oneOf")
_SCHEMAS = ("not", "if", "then", "else")
_BY_NAME = ("dependentSchemas", "dependencies")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_NOT_OF_A_TREE = (*_REFERENCES, "unevaluatedProperties", "unevaluatedItems")
_OF_ALL = ("additionalProperties", "unevaluatedProperties", "items", "additionalItems", "unevaluatedItems", "contains")
_SCALAR, _TEXT, _PARTS = range(3)


class TooMuchWork(Exception):
    """It would take too long, or nobody can tell how long it takes."""


def count(schema: Any, value: Any) -> int:
    """Looks, at most. Raises `TooMuchWork`. The value is one of plain JSON."""
    try:
        counting = _Count(schema)
        most = counting.at_most(len(to_json(value)))
        return most if most is not None and most <= _MOST_AT_MOST else counting.of(schema, value)
    except RecursionError as exc:
        raise TooMuchWork from exc


class _Count:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: dict[tuple[int, int, int], int | None] = {}
        self._named: dict[str, Any] = {}
        self._weights: dict[str, int] = {}
        self._parts = 0
        self._is_tree = True
        self._visit(root)
        if str(_fields(root).get("$schema")).rstrip("#").endswith("draft-04/schema"):
            raise TooMuchWork  # any field of it that is called `id` may move its references

    def at_most(self, size: int) -> int | None:
        """For a value of so many bytes as JSON. None where one part of the schema may be met in many ways."""
        # A part of a value has two bytes or more.
        return (self._parts // 2 + 1 + sum(self._weights.values())) * size if self._is_tree else None

    def of(self, schema: Any, value: Any) -> int:
        if not isinstance(schema, dict):
            return 1
        part = cast(dict[str, Any], schema)
        pair = (id(part), *_kind(value))
        if pair in self._known:
            found = self._known[pair]
            if found is None:
                raise TooMuchWork  # it comes back to itself without having gone deeper
            return found
        if len(self._known) >= _MOST_COUNTED:
            raise TooMuchWork
        self._known[pair] = None
        looks = 1 + self._by_patterns(part, value)
        for each in self._here(part):
            looks += self.of(each, value)
        for each, below in _below(part, value):
            looks += self.of(each, below)
        if "unevaluatedProperties" in part or "unevaluatedItems" in part:
            looks *= 2  # what was evaluated is found out by looking again
        if looks > MOST:
            raise TooMuchWork
        self._known[pair] = looks
        return looks

    def _here(self, part: Mapping[str, Any]) -> Iterator[Any]:
        """Schemas for the very same value."""
        for name in _LISTS:
            yield from _items(part.get(name))
        for name in _SCHEMAS:
            if name in part:
                yield part[name]
        for name in _BY_NAME:
            yield from _fields(part.get(name)).values()
        for name in _REFERENCES:
            if name in part:
                yield self._at(part[name])

    def _by_patterns(self, part: Mapping[str, Any], value: Any) -> int:
        if isinstance(value, str):
            return 2 ** len(value).bit_length() * self._weights.get(str(part.get("pattern")), 0)
        if not isinstance(value, dict):
            return 0
        names = list(cast(dict[str, Any], value))
        weight = sum(self._weights[each] for each in _fields(part.get("patternProperties")))
        looks = weight * sum(map(len, names)) if weight else 0
        return looks + sum(self.of(part["propertyNames"], each) for each in names if "propertyNames" in part)

    def _at(self, reference: Any) -> Any:
        """What a reference names. What is not found here is not counted, and so not used."""
        if not isinstance(reference, str):
            raise TooMuchWork
        if reference in self._named:
            return self._named[reference]
        if reference != "#" and not reference.startswith("#/"):
            raise TooMuchWork
        found: Any = self._root
        for step in unquote(reference[1:]).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            try:
                found = found[int(name) if isinstance(found, list) else name]
            except (LookupError, TypeError, ValueError) as exc:
                raise TooMuchWork from exc
        return found

    def _visit(self, part: Any) -> None:
        """Find what is named otherwise than by its place, and weigh the patterns."""
        if isinstance(part, list):
            for each in cast(list[Any], part):
                self._visit(each)
        elif isinstance(part, dict):
            fields = cast(dict[str, Any], part)
            self._parts += 1
            self._is_tree &= not any(each in fields for each in _NOT_OF_A_TREE)
            if fields is not self._root and isinstance(fields.get("$id"), str):
                raise TooMuchWork  # references below it are read from there
            for name in ("$anchor", "$dynamicAnchor"):
                if isinstance(fields.get(name), str):
                    self._name(f"#{fields[name]}", fields)
            for each in (fields.get("pattern"), *_fields(fields.get("patternProperties"))):
                if isinstance(each, str):
                    self._weigh(each)
            for each in fields.values():
                self._visit(each)

    def _name(self, name: str, part: Any) -> None:
        if self._named.setdefault(name, part) is not part:
            raise TooMuchWork

    def _weigh(self, pattern: str) -> None:
        if pattern in self._weights:
            return
        if len(self._weights) >= _MOST_PATTERNS:
            raise TooMuchWork
        try:
            size = Pattern(pattern).size
        except InvalidInput:
            size = LARGEST
        self._weights[pattern] = -(-size // _LOOK)


def _kind(value: Any) -> tuple[int, int]:
    """What the count depends on: of texts their size, roughly, and of other scalars nothing."""
    if isinstance(value, dict | list):
        return _PARTS, id(cast(object, value))
    return (_TEXT, len(value).bit_length()) if isinstance(value, str) else (_SCALAR, 0)


def _below(part: Mapping[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:
    """Schemas for parts of the value. Which of several a part is held against is not asked: all of them."""
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        for name, each in _fields(part.get("properties")).items():
            if name in fields:
                yield each, fields[name]
        parts = list(fields.values())
    else:
        parts = _items(value)
    for name in _OF_ALL:
        if name in part:
            schemas = _items(part[name]) or [part[name]]
            yield from ((schema, each) for schema in schemas for each in parts)
    for schema in (*_fields(part.get("patternProperties")).values(), *_items(part.get("prefixItems"))):
        yield from ((schema, each) for each in parts)


def _items(given: Any) -> list[Any]:
    return cast(list[Any], given) if isinstance(given, list) else []


def _fields(given: Any) -> dict[str, Any]:
    return cast(dict[str, Any], given) if isinstance(given, dict) else {}
