"""Log lines that strangers can cause: a few of a kind are written, the rest is counted."""

import logging
from collections.abc import Hashable

from outlast.clock import monotonic

_MOST_KINDS = 1_000


class Sparse:
    """So many of a kind in a while; the next one that is written says how many were left out."""

    def __init__(self, *, most: int = 20, seconds: float = 10.0) -> None:
        self._most = most
        self._seconds = seconds
        self._seen: dict[Hashable, tuple[float, int]] = {}

    def left_out(self, kind: Hashable) -> int | None:
        """None: leave this one out too. Else write it: so many were left out since the last one."""
        now = monotonic()
        until, count = self._seen.get(kind, (0.0, 0))
        before = 0
        if now > until:
            before, until, count = max(0, count - self._most), now + self._seconds, 0
        if len(self._seen) >= _MOST_KINDS and kind not in self._seen:
            self._seen.clear()
        self._seen[kind] = (until, count + 1)
        return before if count < self._most else None


class SparseFilter(logging.Filter):
    """For loggers of libraries: the same message, whatever stands in it, is one kind."""

    def __init__(self) -> None:
        super().__init__()
        self._sparse = Sparse()

    def filter(self, record: logging.LogRecord) -> bool:
        left_out = self._sparse.left_out((record.name, record.levelno, record.msg))
        if left_out:
            record.msg = f"{record.msg} ({left_out} more like this were not logged)"
        return left_out is not None
