"""What a monitor waits for in the results of its tool: data that is judged without running anything of anybody's.

`{"kind": "changed"}`, or `equals`, `matches`, `above` and `below` with a `value`; with a `path` of part of the result,
such as `jobs[0].state`. A regular expression is held against the beginning of a long result only (see
`outlast.permissions.pattern`), so that no result can make it slow.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic_core import to_json

from outlast.errors import InvalidInput
from outlast.permissions.pattern import LONGEST_PATTERN, Pattern

KINDS = ("changed", "equals", "matches", "above", "below")
_LONGEST_PATH = 500
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,9})\]|\[\"([^\"]+)\"\]|\['([^']+)'\]")
_MISSING = object()


def check(given: Mapping[str, Any]) -> dict[str, Any]:
    """The condition as it is kept. Raises `InvalidInput` that names the fault."""
    unknown = sorted(given.keys() - {"kind", "path", "value"})
    kind, path, value = given.get("kind", "changed"), given.get("path"), given.get("value")
    if unknown or kind not in KINDS:
        what = f"{', '.join(unknown)} is not known" if unknown else f"kind={kind!r} is not known"
        raise _refused(f"{what}: give kind (one of {', '.join(KINDS)}), path and value")
    if path is not None:
        _steps(path)
    if kind == "changed":
        if "value" in given and value is not None:
            raise _refused("changed takes no value")
        return {"kind": kind, "path": path}
    if "value" not in given:
        raise _refused(f"{kind} needs a value")
    if kind == "matches":
        _pattern(value)
    if kind in ("above", "below") and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise _refused(f"{kind} needs a number as its value")
    return {"kind": kind, "path": path, "value": value}


def is_met(condition: Mapping[str, Any], result: Any, last: Any, *, has_last: bool) -> bool:
    """`last`: the result of the check before. With none before, nothing has changed."""
    found, kind, value = _at(result, condition.get("path")), condition["kind"], condition.get("value")
    if kind == "changed":
        return has_last and _text(found) != _text(_at(last, condition.get("path")))
    if found is _MISSING:
        return False
    if kind == "equals":
        return found == value and isinstance(found, bool) == isinstance(value, bool)
    if kind == "matches":
        return _matches(str(value), found if isinstance(found, str) else _text(found))
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False
    return found > cast(float, value) if kind == "above" else found < cast(float, value)


def in_words(condition: Mapping[str, Any]) -> str:
    what = f"its {condition['path']}" if condition.get("path") else "its result"
    if condition["kind"] == "changed":
        return f"{what} has changed"
    words = {"equals": "equals", "matches": "matches", "above": "is above", "below": "is below"}
    return f"{what} {words[condition['kind']]} {_text(condition['value'])[:200]}"


def _text(value: Any) -> str:
    return "" if value is _MISSING else to_json(_sorted(value), inf_nan_mode="strings").decode()


def _sorted(value: Any) -> Any:
    """Objects say the same whatever the order of their names."""
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        return {name: _sorted(fields[name]) for name in sorted(fields)}
    return [_sorted(each) for each in cast(list[Any], value)] if isinstance(value, list) else value


def _steps(path: Any) -> Sequence[str | int]:
    if not isinstance(path, str) or not 0 < len(path) <= _LONGEST_PATH:
        raise _refused(f"path: {path!r} is not a path")
    text, at, steps = path.removeprefix("$"), 0, list[str | int]()
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise _refused(f"path: {path!r} is not a path: write names and numbers such as jobs[0].state")
        steps.append(int(found[2]) if found[2] is not None else found[1] or found[3] or found[4])
        at = found.end()
    return steps


def _at(value: Any, path: str | None) -> Any:
    for step in () if path is None else _steps(path):
        if isinstance(value, dict) and str(step) in value:
            value = cast(dict[str, Any], value)[str(step)]
        elif isinstance(value, list) and str(step).isdigit() and int(step) < len(cast(list[Any], value)):
            value = cast(list[Any], value)[int(step)]
        else:
            return _MISSING
    return value


def _pattern(given: Any) -> Pattern:
    if not isinstance(given, str) or len(given) > LONGEST_PATTERN:
        raise _refused(f"matches needs a regular expression of at most {LONGEST_PATTERN} characters as its value")
    try:
        return Pattern(given)
    except InvalidInput as exc:
        raise _refused(
            f"{given!r} is not a regular expression that can be used: look-around and back-references are none, and "
            "it may be too large"
        ) from exc


def _matches(pattern: str, text: str) -> bool:
    wanted = _pattern(pattern)
    return wanted.is_in(text[: wanted.longest]) is True


def _refused(why: str) -> InvalidInput:
    return InvalidInput(f"condition: {why}.", field="condition")
