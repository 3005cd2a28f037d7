"""HTTP to whichever API process answers: clients go on to the next one when one does not."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from outlast.client import Client
from outlast.errors import ServerFault, StoreUnavailable, Unreachable

T = TypeVar("T")

ANSWER_SECONDS = 8.0
AWAY = (Unreachable, StoreUnavailable, ServerFault, TimeoutError)
"""No answer that says anything about what was asked: another process may have one."""
_PATIENCE = 1.0
_PAUSE_SECONDS = 0.1


class Line:
    """The API processes of the cluster, as a load balancer without any memory would show them."""

    def __init__(self, ports: Sequence[int], token: str, chance: random.Random) -> None:
        self.clients = [Client(f"http://127.0.0.1:{port}", token, patience=_PATIENCE) for port in ports]
        self.troubles: Counter[str] = Counter()
        self._chance = chance

    async def ask(self, do: Callable[[Client], Awaitable[T]]) -> T:
        """Ask until somebody answers: only for what is done once however often it is asked."""
        at = self._chance.randrange(len(self.clients))
        while True:
            try:
                return await self.ask_once(do, at=at)
            except AWAY:
                at = self.next(at)
                await asyncio.sleep(_PAUSE_SECONDS)

    async def ask_once(self, do: Callable[[Client], Awaitable[T]], *, at: int | None = None) -> T:
        """Raises one of `AWAY` when it is not known what became of it."""
        if at is None:
            at = self._chance.randrange(len(self.clients))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await do(self.clients[at])
        except AWAY as exc:
            self.note(exc)
            raise

    def note(self, exc: BaseException) -> None:
        said = f": {exc}" if isinstance(exc, ServerFault) else ""
        self.troubles[f"{type(exc).__name__}{said}"] += 1

    def next(self, at: int) -> int:
        return (at + 1) % len(self.clients)

    async def close(self) -> None:
        for each in self.clients:
            await each.close()
