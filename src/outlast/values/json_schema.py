"""JSON Schemas that people, models and tools give: checked when they come, and values checked against them.

Nothing is fetched for a `$ref`, and what would take long is not done: see `outlast.values.schema_work`.
"""

from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import to_json

from outlast.errors import InvalidInput
from outlast.permissions.pattern import LARGEST
from outlast.values import clean, schema_work
from outlast.values.schema_work import TooMuchWork

MAX_BYTES = 64 * 1024
"""Of a schema as JSON."""
_MOST = 5
"""So many faults are named; the rest is counted."""
_WORDS = 300
_MOST_NAMING = 1_000_000
"""Looks times bytes: each fault that is named costs as much as the schema and the value are long."""
_TOO_LARGE = "it does not fit the schema, and is too large for all faults to be named"
_TOO_MUCH = "it would take too long to be held against the schema: make the schema simpler, or the value smaller"


def check(schema: Any, what: str = "schema") -> dict[str, Any]:
    """The schema itself, an object of JSON. Raises `InvalidInput` that says what is wrong with it."""
    if not isinstance(schema, Mapping):
        raise InvalidInput(f"The {what} must be a JSON Schema, an object such as {{'type': 'string'}}.")
    plain = clean.value(dict(cast(Mapping[str, Any], schema)))
    if len(to_json(plain)) > MAX_BYTES:
        raise InvalidInput(f"The {what} has more than {MAX_BYTES} bytes: make it smaller.")
    _validator(plain, what)
    try:
        schema_work.count(plain, None)
    except TooMuchWork as exc:
        raise InvalidInput(
            f"The {what} cannot be used here: whoever holds a value against it would be busy for too long. Let no part "
            "lead to itself or to others again and again, and leave out $id."
        ) from exc
    return plain


def faults(schema: Mapping[str, Any], value: Any) -> list[str]:
    """Why a value does not fit, a line each; none when it does. The schema has been checked before.

    A value is judged as it would be stored.
    """
    plain = clean.value(value)
    try:
        looks = schema_work.count(schema, plain)
    except TooMuchWork:
        return [_TOO_MUCH]
    validator = _validator(dict(schema), "schema")
    if validator.is_valid(plain):
        return []
    asked = to_json(schema)
    if looks * (len(to_json(plain)) + len(asked)) > _MOST_NAMING:
        has_branches = b'"anyOf"' in asked or b'"oneOf"' in asked
        return [_TOO_LARGE] if has_branches else [_first(validator, plain), _TOO_LARGE]
    found: list[str] = []
    more = 0
    for error in validator.iter_errors(plain):
        if len(found) == _MOST:
            more += 1
            continue
        found.append(_in_words(error))
    return [*found, f"and {more} more"] if more else found


def _first(validator: Any, value: Any) -> str:
    import jsonschema_rs

    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as exc:
        return _in_words(exc)
    return "it fits"


def _in_words(error: Any) -> str:
    place = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in error.instance_path)
    words = clean.text(error.message)
    words = words if len(words) <= _WORDS else f"{words[:_WORDS]}…"
    return f"{place.removeprefix('.')}: {words}" if place else words


def _validator(schema: dict[str, Any], what: str) -> Any:
    # Imported when the first schema comes: a process that is given none starts faster.
    import jsonschema_rs

    try:
        options = jsonschema_rs.RegexOptions(size_limit=LARGEST)
        return jsonschema_rs.validator_for(schema, pattern_options=options, offline=True)
    except (jsonschema_rs.ValidationError, ValueError) as exc:
        words = clean.words_of(exc).splitlines()[0][:_WORDS]
        raise InvalidInput(f"The {what} is not a JSON Schema that can be used here: {words}") from exc
