"""Waits between tries: longer each time, never in step with other clients, and not for ever."""

import asyncio
import math
import random
from collections.abc import Iterator

from outlast.clock import monotonic

_FIRST_SECONDS = 0.1
_LONGEST_SECONDS = 5.0


def growing(first: float, longest: float = math.inf) -> Iterator[float]:
    """Seconds to wait before each next try, twice as many each time, up to `longest`; without end."""
    seconds = first
    while True:
        yield min(seconds, longest)
        seconds = min(seconds * 2, longest)


class Pauses:
    """`patience`: how many seconds after the first failure there is still another try."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._until: float | None = None
        self._spans = growing(_FIRST_SECONDS, _LONGEST_SECONDS)

    def reset(self) -> None:
        """It worked: the next failure is a first one."""
        self._until = None
        self._spans = growing(_FIRST_SECONDS, _LONGEST_SECONDS)

    async def next(self, *, at_least: float = 0.0) -> bool:
        """Wait before the next try; False when there should be none. `at_least` is what the server asked for."""
        now = monotonic()
        if self._until is None:
            self._until = now + self._patience
        pause = max(at_least, next(self._spans) * random.uniform(0.5, 1.0))
        if now + pause > self._until:
            return False
        await asyncio.sleep(pause)
        return True
