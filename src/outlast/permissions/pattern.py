"""Patterns that people write, matched with what models write: each takes time in proportion to the text.

They are regular expressions of Rust's `regex`, which never backtracks: what cannot be matched in linear time,
look-around and back references, is refused. `^` and `$` are the beginning and the end of the whole text.
"""

from typing import Any

from outlast.errors import InvalidInput

LONGEST_PATTERN = 500
LONGEST_TEXT = 1_000_000
"""Characters of an argument that are looked at."""


class Pattern:
    """A regular expression that is looked for anywhere in a text."""

    def __init__(self, text: str) -> None:
        # Imported with the first pattern: a process that has none starts faster.
        import jsonschema_rs

        if len(text) > LONGEST_PATTERN:
            raise InvalidInput(f"A pattern has at most {LONGEST_PATTERN} characters.")
        schema = {"type": "string", "pattern": text}
        try:
            self._validator: Any = jsonschema_rs.validator_for(schema, pattern_options=jsonschema_rs.RegexOptions())
        except (jsonschema_rs.ValidationError, ValueError) as exc:
            raise InvalidInput(
                f"The pattern {text!r} cannot be used: it is no regular expression, it is too large, or it looks "
                "around or back."
            ) from exc

    def is_in(self, text: str) -> bool | None:
        """None when the text is too long to be looked at."""
        if len(text) > LONGEST_TEXT:
            return None
        return self._validator.is_valid(text.encode(errors="replace").decode())
