"""One rule: a tool by name, and what its arguments must be for the rule to apply.

    rule      = name [ "(" condition { "," condition } ")" ]
    name      = letters, digits and _ - . : /, and * for any run of characters
    condition = argument operator value
    argument  = name { "." name }             a field of an argument that is an object
    operator  = "==" | "!=" | "<" | "<=" | ">" | ">=" | "~="
    value     = 'text' | "text" | number | true | false | null

`shell`, `mcp_*`, `shell(command~='^git ')`, `pay(amount<=100, currency=='EUR')`, `fetch(url~='^https://')`.

All conditions must hold. `~=` looks for a pattern anywhere in a text (see `outlast.permissions.pattern`); the four that
compare are for numbers. Text is taken as it stands: no backslash is read, and its own quotation mark is written twice.
An argument that is not there, is null, or is of another kind than the value leaves open whether the condition holds:
`denies` takes that for yes and `allows` for no, so that nothing gets past a rule by being written otherwise.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any, cast

from outlast.errors import InvalidInput
from outlast.permissions.pattern import Pattern

LONGEST_RULE = 1_000
_NAME = re.compile(r"[A-Za-z0-9_.:/*-]+")
_ARGUMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)*")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_WORD = re.compile(r"[a-z]+")
_COMPARE = {"==": eq, "!=": ne, "<=": le, ">=": ge, "<": lt, ">": gt}
_OPERATORS = ("==", "!=", "<=", ">=", "~=", "<", ">")
_CONSTANTS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Condition:
    argument: tuple[str, ...]
    operator: str
    value: Value
    pattern: Pattern | None = None

    def is_met(self, arguments: Any) -> bool | None:
        """None: it cannot be told."""
        found = _at(arguments, self.argument)
        if self.value is None:
            return (found is None) == (self.operator == "==")
        if _kind(found) is not _kind(self.value):
            return None
        if self.pattern is not None:
            return self.pattern.is_in(found)
        return bool(_COMPARE[self.operator](found, self.value))


@dataclass(frozen=True, slots=True)
class Rule:
    """`text` is how it was written."""

    text: str
    name: str
    conditions: Sequence[Condition] = ()

    def surely_applies(self, tool: str, arguments: Any) -> bool:
        """It names the tool, and all its conditions are met."""
        return self._applies(tool, arguments) is True

    def may_apply(self, tool: str, arguments: Any) -> bool:
        """Likewise, or a condition cannot be told of these arguments."""
        return self._applies(tool, arguments) is not False

    def names(self, tool: str) -> bool:
        """Whether it is about this tool, whatever the arguments."""
        first, *between = self.name.split("*")
        if not between:
            return tool == first
        *between, last = between
        if not tool.startswith(first) or not tool.endswith(last) or len(tool) < len(first) + len(last):
            return False
        at, end = len(first), len(tool) - len(last)
        for piece in between:
            at = tool.find(piece, at, end)
            if at < 0:
                return False
            at += len(piece)
        return True

    def _applies(self, tool: str, arguments: Any) -> bool | None:
        if not self.names(tool):
            return False
        met = [each.is_met(arguments) for each in self.conditions]
        if False in met:
            return False
        return None if None in met else True


def parse(text: str) -> Rule:
    """Raises `InvalidInput` that names the fault and its place."""
    if len(text) > LONGEST_RULE:
        raise InvalidInput(f"A rule has at most {LONGEST_RULE} characters; this one has {len(text)}.")
    return _Reader(text).rule()


class _Reader:
    """Goes through the text once, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def rule(self) -> Rule:
        name = self._take(_NAME, "the name of a tool")
        conditions = list[Condition]()
        if self._has("("):
            conditions.append(self._condition())
            while self._has(","):
                conditions.append(self._condition())
            if not self._has(")"):
                raise self._fault('"," or ")"')
        self._space()
        if self._at < len(self._text):
            raise self._fault("the end")
        return Rule(self._text.strip(), name, tuple(conditions))

    def _condition(self) -> Condition:
        argument = tuple(self._take(_ARGUMENT, "the name of an argument").split("."))
        operator = next((each for each in _OPERATORS if self._has(each)), None)
        if operator is None:
            raise self._fault(f"one of {' '.join(_OPERATORS)}")
        value = self._value()
        if operator == "~=":
            if not isinstance(value, str):
                raise self._fault("a pattern in quotation marks", before=True)
            return Condition(argument, operator, value, Pattern(value))
        if operator not in ("==", "!=") and _kind(value) is not float:
            raise self._fault(f"a number, which is all that {operator} compares,", before=True)
        return Condition(argument, operator, value)

    def _value(self) -> Value:
        for quote in ("'", '"'):
            if self._has(quote):
                return self._quoted(quote)
        if (number := self._try(_NUMBER)) is not None:
            return float(number) if "." in number else int(number)
        word = self._try(_WORD)
        if word is None or word not in _CONSTANTS:
            raise self._fault("a value: 'text', a number, true, false or null", before=word is not None)
        return _CONSTANTS[word]

    def _quoted(self, quote: str) -> str:
        pieces = list[str]()
        while True:
            end = self._text.find(quote, self._at)
            if end < 0:
                raise self._fault(f"a closing {quote}")
            pieces.append(self._text[self._at : end])
            self._at = end + 1
            if self._text[self._at : self._at + 1] != quote:
                return quote.join(pieces)
            self._at += 1

    def _take(self, pattern: re.Pattern[str], what: str) -> str:
        found = self._try(pattern)
        if found is None:
            raise self._fault(what)
        return found

    def _try(self, pattern: re.Pattern[str]) -> str | None:
        self._space()
        found = pattern.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found[0]

    def _has(self, token: str) -> bool:
        self._space()
        if not self._text.startswith(token, self._at):
            return False
        self._at += len(token)
        return True

    def _space(self) -> None:
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1

    def _fault(self, expected: str, *, before: bool = False) -> InvalidInput:
        place = f"{'before' if before else 'at'} character {self._at + 1}"
        return InvalidInput(f"The rule {self._text!r} cannot be read: {expected} is expected {place}.")


def _at(arguments: Any, path: Sequence[str]) -> Any:
    """What stands there; what is not there is as null."""
    found = arguments
    for each in path:
        if not isinstance(found, Mapping):
            return None
        found = cast(Mapping[str, Any], found).get(each)
    return found


def _kind(value: Any) -> type | None:
    """Text, truth or number; all else is of no kind, and so is what is no number although it is of that type."""
    if isinstance(value, bool):
        return bool
    if isinstance(value, str):
        return str
    is_number = isinstance(value, int) or (isinstance(value, float) and not math.isnan(value))
    return float if is_number else None
