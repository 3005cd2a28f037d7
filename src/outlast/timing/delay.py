"""A delay in words: `in 20 minutes`, `1 h 30 min`, `90s`."""

import re
from datetime import timedelta

from outlast.errors import InvalidInput

LONGEST = timedelta(days=366)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_NAMES = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("w", "week", "weeks"), "w"),
}
_PART = re.compile(r"(\d{1,8}|an?|one)\s*([a-z]+)")
_BETWEEN = re.compile(r"[\s,]++(?:and\b[\s,]*+)?+")


def parse(words: str) -> timedelta:
    """At least a second, at most a year. Raises `InvalidInput` that names the fault."""
    text = words.strip().lower()[:100].removeprefix("in ").strip()
    total, at = timedelta(), 0
    while at < len(text):
        found = _PART.match(text, at)
        unit = None if found is None else _NAMES.get(found[2])
        if found is None or unit is None:
            raise _refused(words)
        number = int(found[1]) if found[1].isdigit() else 1
        total += min(timedelta(**{_UNITS[unit]: number}), 2 * LONGEST)
        between = _BETWEEN.match(text, found.end())
        at = found.end() if between is None else between.end()
    if not timedelta(seconds=1) <= total <= LONGEST:
        raise _refused(words, "it is shorter than a second or longer than a year")
    return total


def _refused(words: str, why: str = "it is not understood") -> InvalidInput:
    return InvalidInput(
        f"delay: {words[:100]!r}: {why}. Write a number and a unit, such as 'in 20 minutes' or '1 h 30 min'.",
        field="delay",
    )
