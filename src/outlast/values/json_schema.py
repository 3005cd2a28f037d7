"""JSON Schemas that people, models and tools give: checked when they come, and values checked against them.

Nothing is fetched for a `$ref`, and patterns take time in proportion to the text they are matched with.
"""

from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import to_json

from outlast.errors import InvalidInput
from outlast.values import clean

MAX_BYTES = 64 * 1024
"""Of a schema as JSON."""
_MOST = 5
"""So many faults are named; the rest is counted."""
_WORDS = 300


def check(schema: Any, what: str = "schema") -> dict[str, Any]:
    """The schema itself, an object of JSON. Raises `InvalidInput` that says what is wrong with it."""
    if not isinstance(schema, Mapping):
        raise InvalidInput(f"The {what} must be a JSON Schema, an object such as {{'type': 'string'}}.")
    plain = clean.value(dict(cast(Mapping[str, Any], schema)))
    if len(to_json(plain)) > MAX_BYTES:
        raise InvalidInput(f"The {what} has more than {MAX_BYTES} bytes: make it smaller.")
    _validator(plain, what)
    return plain


def faults(schema: Mapping[str, Any], value: Any) -> list[str]:
    """Why a value does not fit, a line each; none when it does. The schema has been checked before.

    A value is judged as it would be stored.
    """
    found: list[str] = []
    more = 0
    for error in _validator(dict(schema), "schema").iter_errors(clean.value(value)):
        if len(found) == _MOST:
            more += 1
            continue
        place = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in error.instance_path)
        words = clean.text(error.message)
        words = words if len(words) <= _WORDS else f"{words[:_WORDS]}…"
        found.append(f"{place.removeprefix('.')}: {words}" if place else words)
    return [*found, f"and {more} more"] if more else found


def _validator(schema: dict[str, Any], what: str) -> Any:
    # Imported when the first schema comes: a process that is given none starts faster.
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(schema, pattern_options=jsonschema_rs.RegexOptions(), offline=True)
    except (jsonschema_rs.ValidationError, ValueError) as exc:
        words = clean.words_of(exc).splitlines()[0][:_WORDS]
        raise InvalidInput(f"The {what} is not a JSON Schema that can be used here: {words}") from exc
