"""Registered values: what tools say is secret, starred out wherever something is stored or shown.

Adding a value and looking for all of them takes no longer with ten thousand than with a hundred: a text is looked at
in windows of four characters, every third of them, and each value is known by the windows it begins with. Where one may
begin, the longest that does is looked up in order, however many others are the beginnings of each other.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Any, cast
from urllib.parse import quote

import structlog

from outlast.values import clean
from outlast.values.escape import escape
from outlast.values.ordered_forms import OrderedForms

log = structlog.get_logger("outlast.calls")

SHORTEST = 6
LONGEST = 64 * 1024
MOST = 10_000
_WINDOW = 4
_STRIDE = SHORTEST - _WINDOW + 1
"""One of so many windows in a row always lies within the first characters of a value."""
_FEW = 32
"""So many values are looked for faster one by one, as the usual text has none of them."""

Span = tuple[int, int]
Own = Callable[[dict[Any, Any]], dict[Any, Any] | None]


class Secrets:
    """Values that must not be seen outside the tools that use them. One registry per runtime; thread-safe.

    Values of fewer than 6 characters are not taken, since masking them would blank out ordinary text, nor are those
    of more than 65,536. At most `most` are known: the one that was registered longest ago is forgotten for a new one.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = Lock()
        self._values: dict[str, tuple[str, ...]] = {}
        """Each with its forms, the one that was registered longest ago first."""
        self._forms: dict[str, int] = {}
        """How many values have this form."""
        self._windows: dict[str, dict[int, int]] = {}
        """How far before this window forms begin that have it, and how many of them there are."""
        self._ordered = OrderedForms()
        self._few: tuple[str, ...] = ()
        self._is_full = False
        self.version = 0
        """Higher whenever a value was added."""
        self.when_added: Callable[[str], None] | None = None
        """Told of each new value, in the thread that registers it."""

    @property
    def is_empty(self) -> bool:
        return not self._forms

    def values(self) -> list[str]:
        """The one that was registered longest ago first."""
        with self._lock:
            return list(self._values)

    def add(self, value: str) -> None:
        """From now on it is masked; what was stored before is masked where it is shown."""
        if self.learn(value) and self.when_added is not None:
            self.when_added(value)

    def learn(self, value: str) -> bool:
        """Add a value that is known elsewhere already. Gives whether it was new here."""
        if not SHORTEST <= len(value) <= LONGEST:
            return False
        with self._lock:
            known = self._values.pop(value, None)
            self._values[value] = known or _forms(value)
            if known is not None:
                return False
            for form in self._values[value]:
                self._index(form)
            if len(self._values) > self._most:
                self._forget_oldest(next(iter(self._values)))
            self._few = tuple(self._forms) if len(self._forms) <= _FEW else ()
            self.version += 1
        return True

    def forget(self, value: str) -> None:
        """It is worth nothing any more, and no longer masked."""
        with self._lock:
            if value in self._values:
                self._remove(value)
                self._few = tuple(self._forms) if len(self._forms) <= _FEW else ()

    def mask(self, value: Any, *, own: Own | None = None) -> Any:
        """A copy with every registered value starred out at its own length, so that offsets in text stay true.

        The same object where there is nothing to mask. Names of fields are masked too: it is for what others wrote,
        and objects of the runtime go through `outlast.values.foreign`. `own` gives such objects within the value as
        they are to be shown, and None for all others.
        """
        if not self._forms:
            return value
        if isinstance(value, str):
            spans = self.spans(value)
            return starred(value, spans) if spans else value
        if isinstance(value, dict):
            fields = cast(dict[Any, Any], value)
            known = None if own is None else own(fields)
            return self._mask_fields(fields, own) if known is None else known
        if isinstance(value, list):
            items = cast(list[Any], value)
            masked = [self.mask(each, own=own) for each in items]
            return items if all(one is other for one, other in zip(masked, items, strict=True)) else masked
        return value

    def spans(self, text: str) -> list[Span]:
        """Where registered values stand in a text, of those that begin at one place the longest. They may overlap."""
        few = self._few
        if len(text) < SHORTEST or (few and not any(form in text for form in few)):
            return []
        windows, ordered = self._windows, self._ordered
        found: list[Span] = []
        for at in range(0, len(text) - _WINDOW + 1, _STRIDE):
            if (known := windows.get(text[at : at + _WINDOW])) is None:
                continue
            for offset in tuple(known):
                if offset <= at and (length := ordered.longest_at(text, at - offset)):
                    found.append((at - offset, at - offset + length))
        return found

    def tail(self, text: str) -> int:
        """Where the end of a text begins that may be the beginning of a value; its length if there is none."""
        length, windows, ordered = len(text), self._windows, self._ordered
        for at in range(max(0, length - ordered.most + 1), length):
            # First by its beginning alone: to cut out each end of a long text takes a time that grows with its square.
            if (length - at < _WINDOW or text[at : at + _WINDOW] in windows) and ordered.go_on(text[at:]):
                return at
        return length

    def _mask_fields(self, fields: dict[Any, Any], own: Own | None) -> dict[Any, Any]:
        masked: dict[Any, Any] = {}
        is_same = True
        for name, each in fields.items():
            clean, value = self.mask(name), self.mask(each, own=own)
            is_same = is_same and clean is name and value is each
            while clean is not name and clean in masked:
                clean += "*"
            masked[clean] = value
        return fields if is_same else masked

    def _index(self, form: str) -> None:
        self._forms[form] = self._forms.get(form, 0) + 1
        if self._forms[form] > 1:
            return
        self._ordered.add(form)
        for offset in range(_STRIDE):
            known = self._windows.setdefault(form[offset : offset + _WINDOW], {})
            known[offset] = known.get(offset, 0) + 1

    def _forget_oldest(self, value: str) -> None:
        if not self._is_full:
            self._is_full = True
            log.warning("too many secrets are registered: the oldest are no longer masked", most=self._most)
        self._remove(value)

    def _remove(self, value: str) -> None:
        for form in self._values.pop(value):
            self._forms[form] -= 1
            if not self._forms[form]:
                self._drop(form)

    def _drop(self, form: str) -> None:
        del self._forms[form]
        self._ordered.remove(form)
        for offset in range(_STRIDE):
            window = form[offset : offset + _WINDOW]
            known = self._windows[window]
            known[offset] -= 1
            if not known[offset]:
                self._windows[window] = {key: count for key, count in known.items() if count}
            if not self._windows[window]:
                del self._windows[window]


class MaskedStream:
    """Text that comes in pieces, masked also where a value is split over them.

    Only the end that may be the beginning of a registered value is held back until more comes, or until the close.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._held = ""
        self._starred = 0
        """So many characters of what is held belong to a value that was found."""

    def feed(self, text: str) -> str:
        """What may be told now, together with what was held before."""
        if self._secrets.is_empty and not self._held:
            return text
        return self._release(self._held + text, is_last=False)

    def close(self) -> str:
        return self._release(self._held, is_last=True) if self._held else ""

    def _release(self, whole: str, *, is_last: bool) -> str:
        spans = [*self._secrets.spans(whole), (0, self._starred)]
        cut = len(whole) if is_last else self._secrets.tail(whole)
        self._held = whole[cut:]
        self._starred = max(0, max(end for begin, end in spans if begin <= cut) - cut)
        return starred(whole, spans)[:cut]


def starred(text: str, spans: Iterable[Span]) -> str:
    """As many stars as characters, so that the text stays as long as it was."""
    pieces: list[str] = []
    at = 0
    for begin, end in sorted(spans):
        if end > at:
            pieces += [text[at : max(at, begin)], "*" * (end - max(at, begin))]
            at = end
    return "".join([*pieces, text[at:]])


def _forms(value: str) -> tuple[str, ...]:
    """As it is, and as it stands in JSON, in a Python literal and in a URL; each also as it is once text was cleaned.

    Whatever is stored was cleaned before it is masked: a NUL and half a character stand there as something else, and
    the runtime's own tags are broken.
    """
    given = (value, clean.text(value), escape(clean.text(value)))
    forms = [form for each in given for form in _written(each)]
    return tuple(each for each in dict.fromkeys(forms) if len(each) >= SHORTEST)


def _written(value: str) -> tuple[str, ...]:
    in_json: Sequence[str] = (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    return value, *in_json, repr(value)[1:-1], quote(value, safe="", errors="replace")
