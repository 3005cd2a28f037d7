"""Many who want the same of the database at once: one transaction for all of them."""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Generic, Protocol, TypeVar

from outlast.errors import OutlastError, StoreUnavailable
from outlast.store.database import Database, Decision
from outlast.store.unit import Unit

ItemT = TypeVar("ItemT")
AnswerT = TypeVar("AnswerT")
_GivenT = TypeVar("_GivenT", contravariant=True)
_SaidT = TypeVar("_SaidT", covariant=True)

_MOST = 64
"""How many share a transaction: nobody else gets at what it locks meanwhile."""
_TRIES = 10
"""How often one may be left out before it is served alone: what it needs is mostly held by another group."""
_ALONE_AT_ONCE = 2
"""Each of them may wait with a connection that others need."""
_PAUSE_SECONDS = 0.005
"""In which the other group commits, and more come to join the next one."""


class LeftOut(Enum):
    """The answer for one that this group cannot serve."""

    HELD = "held"
    """Somebody else holds what it needs: it joins the next groups, and is served alone after some."""
    ALONE = "alone"
    """No group can serve it."""


class Change(Protocol[_GivenT, _SaidT]):
    """What is asked for."""

    def __call__(
        self, unit: Unit, items: Sequence[_GivenT], /, *, is_alone: bool
    ) -> Sequence[_SaidT | OutlastError | LeftOut]:
        """Gives an answer for each, in their order. It waits for nothing, unless there is one item which `is_alone`."""
        ...


@dataclass(slots=True, eq=False)
class _Asked(Generic[ItemT, AnswerT]):
    item: ItemT
    answer: Decision[AnswerT]
    tries: int = 0


class GroupCommit(Generic[ItemT, AnswerT]):
    """While a transaction is under way, those who come wait, and then share the next one.

    One that fails takes nothing of the others with it: what went wrong together is done again one by one. Nor does one
    wait for what another needs: whoever is left out of a group joins the next ones, and is then served alone.
    """

    def __init__(self, database: Database, change: Change[ItemT, AnswerT], *, name: str) -> None:
        self._database = database
        self._change = change
        self._name = name
        self._waiting: list[_Asked[ItemT, AnswerT]] = []
        self._serving: asyncio.Task[None] | None = None
        self._alone: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_ALONE_AT_ONCE)

    async def ask(self, item: ItemT) -> AnswerT:
        """As `Database.transaction` does: cancelled, it returns when it is decided, and not before."""
        asked: _Asked[ItemT, AnswerT] = _Asked(item, Decision(loop=asyncio.get_running_loop()))
        self._waiting.append(asked)
        if self._serving is None:
            # In a context of its own: it serves others than the one who came first.
            self._serving = asyncio.create_task(self._serve(), name=f"together: {self._name}", context=Context())
            self._serving.add_done_callback(self._served)
        return await asked.answer.reached()

    async def _serve(self) -> None:
        while self._waiting:
            some, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
            try:
                left = await self._serve_some(some, is_alone=False)
            except BaseException:
                _let_go(some)
                raise
            if self._keep(left):
                await asyncio.sleep(_PAUSE_SECONDS)
        self._serving = None

    def _served(self, serving: asyncio.Task[None]) -> None:
        """Who is still waited for when it is cut off, as all are when the event loop ends, gets no answer any more."""
        if self._serving is serving:
            self._serving = None
            _let_go(self._waiting)
            self._waiting = []

    def _keep(self, left: Sequence[_Asked[ItemT, AnswerT]]) -> bool:
        """True: some of them wait for the next group."""
        for each in left:
            each.tries += 1
        kept = [each for each in left if each.tries < _TRIES]
        self._waiting[:0] = kept
        for each in left:
            if each.tries >= _TRIES:
                alone = asyncio.create_task(self._serve_alone(each), name=f"alone: {self._name}", context=Context())
                self._alone.add(alone)
                alone.add_done_callback(partial(self._served_alone, each))
        return bool(kept)

    async def _serve_alone(self, asked: _Asked[ItemT, AnswerT]) -> None:
        async with self._room:
            left = await self._serve_some([asked], is_alone=True)
        assert not left, "who is alone waits for what it needs"

    def _served_alone(self, asked: _Asked[ItemT, AnswerT], alone: asyncio.Task[None]) -> None:
        self._alone.discard(alone)
        _let_go([asked])

    async def _serve_some(
        self, some: Sequence[_Asked[ItemT, AnswerT]], *, is_alone: bool
    ) -> Sequence[_Asked[ItemT, AnswerT]]:
        """Gives those that could not be served with the others."""
        items = [each.item for each in some]

        def change(unit: Unit) -> Sequence[AnswerT | OutlastError | LeftOut]:
            return self._change(unit, items, is_alone=is_alone)

        try:
            answers = await self._database.transaction(change, name=self._name)
        except Exception as exc:
            if is_alone or isinstance(exc, StoreUnavailable):
                for each in some:
                    each.answer.set_exception(exc)
                return []
            for each in some:
                each.tries = _TRIES
            return some
        left: list[_Asked[ItemT, AnswerT]] = []
        for each, answer in zip(some, answers, strict=True):
            if isinstance(answer, LeftOut):
                each.tries = _TRIES if answer is LeftOut.ALONE else each.tries
                left.append(each)
            elif isinstance(answer, OutlastError):
                each.answer.set_exception(answer)
            else:
                each.answer.set_result(answer)
        return left


def _let_go(asked: Sequence[_Asked[ItemT, AnswerT]]) -> None:
    """Those that have no answer."""
    for each in asked:
        if not each.answer.done():
            each.answer.set_exception(asyncio.CancelledError())
