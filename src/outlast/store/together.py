"""Many who want the same of the database at once: one transaction for all of them."""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from enum import Enum
from typing import Generic, TypeVar

from outlast.errors import OutlastError, StoreUnavailable
from outlast.store.database import Database, decided
from outlast.store.unit import Unit

ItemT = TypeVar("ItemT")
AnswerT = TypeVar("AnswerT")

_MOST = 64
"""How many share a transaction: nobody else gets at what it locks meanwhile."""


class Alone(Enum):
    """The answer for one that cannot be served with the others: what it needs is held by somebody else."""

    ALONE = "alone"


ALONE = Alone.ALONE
Change = Callable[[Unit, Sequence[ItemT]], Sequence[AnswerT | OutlastError | Alone]]
"""Gives an answer for each, in their order. With one item it waits for what it needs, with many for nothing."""


class Together(Generic[ItemT, AnswerT]):
    """While a transaction is under way, those who come wait, and then share the next one.

    One that fails takes nothing of the others with it: what went wrong together is done again one by one.
    """

    def __init__(self, database: Database, change: Change[ItemT, AnswerT], *, name: str) -> None:
        self._database = database
        self._change = change
        self._name = name
        self._waiting: list[tuple[ItemT, asyncio.Future[AnswerT]]] = []
        self._serving: asyncio.Task[None] | None = None

    async def ask(self, item: ItemT) -> AnswerT:
        """As `Database.transaction` does: cancelled, it returns when it is decided, and not before."""
        answer: asyncio.Future[AnswerT] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._serving is None:
            # In a context of its own: it serves others than the one who came first.
            self._serving = asyncio.create_task(self._serve(), name=f"together: {self._name}", context=Context())
        return await decided(answer)

    async def _serve(self) -> None:
        try:
            while self._waiting:
                some, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
                await self._serve_some(some)
        finally:
            self._serving = None

    async def _serve_some(self, some: Sequence[tuple[ItemT, asyncio.Future[AnswerT]]]) -> None:
        items = [item for item, _ in some]
        try:
            answers = await self._database.transaction(lambda unit: self._change(unit, items), name=self._name)
        except Exception as exc:
            if len(some) == 1 or isinstance(exc, StoreUnavailable):
                for _, future in some:
                    future.set_exception(exc)
                return
            answers = [ALONE] * len(some)
        left: list[tuple[ItemT, asyncio.Future[AnswerT]]] = []
        for (item, future), answer in zip(some, answers, strict=True):
            if isinstance(answer, Alone):
                assert len(some) > 1, "who is alone waits for what it needs"
                left.append((item, future))
            elif isinstance(answer, OutlastError):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        await asyncio.gather(*(self._serve_some([each]) for each in left))
