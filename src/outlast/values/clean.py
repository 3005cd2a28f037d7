"""Values and text from elsewhere, as JSON that every store keeps and every reader takes.

A tool or a model may hand over anything: what has no such form is told in words in its place, and nothing is raised.
"""

import math
import reprlib
from collections.abc import Callable, Container, Iterator
from itertools import islice
from typing import Any

from pydantic_core import to_jsonable_python

DEPTH = 180
"""Levels of lists and objects in a value: what reads it back takes 200, with all that stands around it."""
BITS = 13_000
"""Of an integer: readers take some 4,300 digits."""
ITEMS = 300_000
"""Lists and objects in one value."""
REPEATED = 20_000
"""Of these, such as stood in it before: a few that hold each other twice have no end in practice."""
_ITERATED = 10_000
_SHOWN = 500
_MOST = 10**15
_TOO_DEEP = f"[left out: nested in more than {DEPTH} levels]"
_TOO_MANY = "[left out: the value has too many parts]"
_ITSELF = "[left out: it holds itself]"

# Of the types themselves: a subclass may do anything else.
_dict: Any = dict
_list: Any = list
_tuple: Any = tuple
_MANY: tuple[type[Any], ...] = (list, tuple, dict, set, frozenset)
_PLAIN = (str, int, float, list, dict, type(None))

Words = Callable[[str], str]


def text(value: str) -> str:
    """Without NUL and lone surrogates, which no store and no wire takes; two halves of a character become one."""
    if type(value) is not str:
        value = str.__str__(value)  # a subclass may do anything else with it
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            value = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value.replace("\x00", "\N{REPLACEMENT CHARACTER}") if "\x00" in value else value


def words_of(value: Any, *, show: Callable[[Any], str] | None = None, most: int | None = _SHOWN) -> str:
    """Any object in a few words, whatever its own code for that does. `show`: how, if not as itself says."""
    try:
        shown = text((show or _show)(value))
    except BaseException as exc:  # the code of somebody else, called from ours: nothing it raises may end us
        shown = f"[a {type(value).__name__} that cannot be shown: {type(exc).__name__}]"
    return shown if most is None or len(shown) <= most else f"{shown[:most]}… ({len(shown)} characters)"


def _show(value: Any) -> str:
    """Of what holds others only the beginning: written out, it may have no end."""
    if isinstance(value, str):
        return value
    return reprlib.repr(value) if isinstance(value, _MANY) else str(value)


def number(value: Any) -> int | float | None:
    """One that can be counted and divided with; None for anything else."""
    try:
        plain = value if type(value) in (int, float) else float(value)
        return plain if math.isfinite(plain) and abs(plain) <= _MOST else None
    except BaseException:  # as in `words_of`
        return None


def value(given: Any, *, words: Words = text, kept: tuple[type[Any], ...] = ()) -> Any:
    """A copy as plain JSON. `words`: what becomes of each text. `kept`: types that stay what they are."""
    if type(given) is str:
        return words(given)
    return _Cleaning(words, kept).clean(given, DEPTH)


class _Cleaning:
    """Of one value. `_around`: the objects in which it stands."""

    def __init__(self, words: Words, kept: tuple[type[Any], ...]) -> None:
        self._words = words
        self._kept = kept
        self._around: set[int] = set()
        self._met: dict[int, Any] = {}
        self._left = ITEMS
        self._repeats_left = REPEATED

    def clean(self, given: Any, room: int) -> Any:
        """One frame of Python's stack a level: values may be nested in almost as many as it takes."""
        if given is None or given is True or given is False:
            return given
        if isinstance(given, str):
            return self._words(given)
        if isinstance(given, int):
            return _integer(given)
        if isinstance(given, float):
            return float.__float__(given) if math.isfinite(given) else None
        if isinstance(given, self._kept):
            return given
        around = id(given)
        if room <= 0 or around in self._around:
            return _TOO_DEEP if room <= 0 else _ITSELF
        if not self._has_room(given):
            return _TOO_MANY
        self._around.add(around)
        if isinstance(given, dict):
            cleaned: Any = {}
            for name, each in _dict.items(given):
                cleaned[self._name(name, cleaned)] = self.clean(each, room - 1)
        elif isinstance(given, list):
            cleaned = []
            for each in _list.__iter__(given):
                cleaned.append(self.clean(each, room - 1))
        elif isinstance(given, tuple):
            cleaned = self.clean(list(_tuple.__iter__(given)), room)
        else:
            cleaned = self._foreign(given, room)
        self._around.discard(around)
        return cleaned

    def _has_room(self, given: Any) -> bool:
        """What was met is held until the end, so that no other object gets its id."""
        self._left -= 1
        if id(given) in self._met:
            self._repeats_left -= 1
        else:
            self._met[id(given)] = given
        return self._left >= 0 and self._repeats_left >= 0

    def _name(self, name: Any, taken: Container[str]) -> str:
        key = self._words(name) if isinstance(name, str) else _key(name)
        return free(key, taken)

    def _foreign(self, given: Any, room: int) -> Any:
        """Anything else: as pydantic writes it, else in its own words. Its code may raise whatever it likes."""
        try:
            if _is_iterator(given):
                found: list[Any] = list(islice(given, _ITERATED + 1))
                plain: Any = [*found[:_ITERATED], _TOO_MANY] if len(found) > _ITERATED else found
            else:
                plain = to_jsonable_python(given, bytes_mode="base64", inf_nan_mode="null", fallback=words_of)
        except BaseException:  # as in `words_of`
            return self._words(words_of(given))
        return self.clean(plain, room) if isinstance(plain, _PLAIN) else self._words(words_of(given))


def _is_iterator(given: Any) -> bool:
    return isinstance(given, Iterator)


def _integer(given: int) -> int | str:
    if int.bit_length(given) <= BITS:
        return given if type(given) is int else int.__int__(given)
    return f"[an integer of about {int(int.bit_length(given) * math.log10(2)) + 1} digits]"


def _key(name: Any) -> str:
    try:
        return text(next(iter(to_jsonable_python({name: None}, fallback=words_of))))
    except BaseException:  # as in `words_of`
        return words_of(name)


def free(key: str, taken: Container[str]) -> str:
    """Two names may become one: none of what they name is lost."""
    name, number = key, 1
    while name in taken:
        number += 1
        name = f"{key} ({number})"
    return name
