"""Long work on the event loop, cut into slices: others run in between, and one owner does one such work at a time."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

_SIZE = 10
"""Of a millisecond at most: a request of somebody else passes the loop about ten times, and waits for one each time."""


async def in_slices(items: Sequence[T]) -> AsyncIterator[Sequence[T]]:
    """All of them, in order, a few at a time; whoever waits for the loop has it after each few.

    In a thread the same work would hold the loop up as much: the interpreter runs one of them at a time.
    """
    for start in range(0, len(items), _SIZE):
        yield items[start : start + _SIZE]
        await asyncio.sleep(0)


class OneAtATime:
    """`async with one_at_a_time(owner):` the others of that owner wait, in the order in which they came."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def __call__(self, owner_id: str) -> asyncio.Lock:
        return self._locks.setdefault(owner_id, asyncio.Lock())
