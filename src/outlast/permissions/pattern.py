"""Patterns that people and models write, matched with what models and tools write: none takes long, whatever the text.

They are regular expressions of Rust's `regex`, which never backtracks: what cannot be matched in linear time,
look-around and back references, is refused. `^` and `$` are the beginning and the end of the whole text. Linear still
means the size of the pattern times that of the text, so the larger a pattern is, the shorter are the texts that it is
held against.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from outlast.errors import InvalidInput

LONGEST_PATTERN = 500
LARGEST = 65_536
_SIZES = (512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, LARGEST)
"""Bytes of a pattern that is ready to be matched: it is of the first of these that it fits in."""
_WORK = 2**26
"""Bytes of a pattern times characters of a text: some 20 ms of the worst pattern."""
_AUTOMATON = 256 * 1024
"""Bytes that matching may take for what it has found out about a pattern."""


@dataclass(frozen=True, slots=True)
class _Ready:
    validator: Any
    size: int


class Pattern:
    """A regular expression that is looked for anywhere in a text."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST_PATTERN:
            raise InvalidInput(f"A pattern has at most {LONGEST_PATTERN} characters.")
        self._ready = _made(text)

    @property
    def size(self) -> int:
        """Bytes, roughly: what a character costs that it is held against."""
        return self._ready.size

    @property
    def longest(self) -> int:
        """Characters of a text that it can be held against."""
        return _WORK // self._ready.size

    def is_in(self, text: str) -> bool | None:
        """None when the text is too long to be looked at."""
        if len(text) > self.longest:
            return None
        return self._ready.validator.is_valid(text.encode(errors="replace").decode())


@lru_cache(maxsize=1_000)
def _made(text: str) -> _Ready:
    # Imported with the first pattern: a process that has none starts faster.
    import jsonschema_rs

    refused: Exception | None = None
    for size in _SIZES:
        options = jsonschema_rs.RegexOptions(size_limit=size, dfa_size_limit=_AUTOMATON)
        try:
            made = jsonschema_rs.validator_for({"type": "string", "pattern": text}, pattern_options=options)
        except (jsonschema_rs.ValidationError, ValueError) as exc:
            refused = exc
        else:
            return _Ready(made, size)
    raise InvalidInput(
        f"The pattern {text!r} cannot be used: it is no regular expression, it is too large, or it looks around or "
        "back."
    ) from refused
