"""Texts in order, each with the longest other one that it begins with: to look up what stands at a place in a text."""

from bisect import bisect_left, bisect_right

_STEPS = 64
"""So many shorter ones are tried before those that are far too long are passed over at once."""
_LAST = "\U0010ffff"


class OrderedForms:
    """No text twice. Changed by one thread at a time; who reads meanwhile misses at most what is added or removed."""

    def __init__(self) -> None:
        self._sorted: list[str] = []
        """Never changed in place: a reader looks twice, and must see the same."""
        self._shorter: dict[str, str | None] = {}
        """The longest other one with which it begins."""
        self.most = 0
        """Characters of the longest that was ever here."""

    def add(self, form: str) -> None:
        at = bisect_left(self._sorted, form)
        shorter = self._sorted[at - 1] if at else None
        while shorter is not None and not form.startswith(shorter):
            shorter = self._shorter[shorter]
        self._shorter[form] = shorter
        self._hand_over(form, at, shorter, form)
        self.most = max(self.most, len(form))
        self._sorted = [*self._sorted[:at], form, *self._sorted[at:]]

    def remove(self, form: str) -> None:
        at = bisect_left(self._sorted, form)
        self._hand_over(form, at + 1, form, self._shorter[form])
        self._sorted = [*self._sorted[:at], *self._sorted[at + 1 :]]
        del self._shorter[form]

    def go_on(self, text: str) -> bool:
        """Whether any begins with this text, and is longer."""
        forms = self._sorted
        at = bisect_left(forms, text)
        return any(each.startswith(text) and each != text for each in forms[at : at + 2])

    def longest_at(self, text: str, begin: int) -> int:
        """How long the longest is that stands in the text from there on; 0 if there is none."""
        while True:
            try:
                return self._longest(text, begin)
            except KeyError:  # one of them was removed just now: without it
                continue

    def _longest(self, text: str, begin: int) -> int:
        forms, end = self._sorted, min(len(text), begin + self.most)
        while at := bisect_right(forms, text[begin:end]):
            # All that stand there come before the text in this order, and the last before it begins with each of them.
            last = forms[at - 1]
            form: str | None = last
            for _ in range(_STEPS):
                if form is None:
                    return 0
                if text.startswith(form, begin, end):
                    return len(form)
                form = self._shorter[form]
            end = begin + _common(last, text[begin:end])
        return 0

    def _hand_over(self, form: str, at: int, before: str | None, after: str | None) -> None:
        """Those that begin with a text and next with `before`, nothing between: from now on with `after`."""
        while at < len(self._sorted) and (each := self._sorted[at]).startswith(form):
            if self._shorter[each] == before:
                self._shorter[each] = after
            # Whatever begins with this one has it, or one that is longer.
            at = max(at + 1, bisect_left(self._sorted, each + _LAST, at))


def _common(one: str, other: str) -> int:
    """With how many characters both begin."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[:middle] == other[:middle]:
            least = middle
        else:
            most = middle - 1
    return least
