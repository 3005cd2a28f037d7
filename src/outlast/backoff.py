"""Waits between tries: longer each time, never in step with other clients, and not for ever."""

import asyncio
import random

from outlast.clock import monotonic

_FIRST_SECONDS = 0.1
_LONGEST_SECONDS = 5.0


class Pauses:
    """`patience`: how many seconds after the first failure there is still another try."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._until: float | None = None
        self._span = _FIRST_SECONDS

    def reset(self) -> None:
        """It worked: the next failure is a first one."""
        self._until = None
        self._span = _FIRST_SECONDS

    async def next(self, *, at_least: float = 0.0) -> bool:
        """Wait before the next try; False when there should be none. `at_least` is what the server asked for."""
        now = monotonic()
        if self._until is None:
            self._until = now + self._patience
        pause = max(at_least, self._span * random.uniform(0.5, 1.0))
        self._span = min(self._span * 2, _LONGEST_SECONDS)
        if now + pause > self._until:
            return False
        await asyncio.sleep(pause)
        return True
