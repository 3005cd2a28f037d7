"""A transaction is a function: `await database.transaction(fn)` runs `fn(unit)` and commits it, or nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, Protocol, TypeVar

import sqlalchemy as sa

from outlast.store.unit import Outbox, Unit

T = TypeVar("T")

Moment = Literal["before", "after"]
CommitWatcher = Callable[[str, Moment], None]
"""Told the name of each transaction just before and just after its commit. Tests stop or kill there."""


class Database(Protocol):
    """The only truth. Two implementations: one SQLite file, or PostgreSQL."""

    watcher: CommitWatcher | None

    async def transaction(self, fn: Callable[[Unit], T], *, name: str) -> T:
        """Run `fn` and commit. Returns only after the commit; raises only if nothing was committed.

        A caller that is cancelled meanwhile gets its `CancelledError` after the commit is decided.
        """
        ...

    async def read(self, fn: Callable[[sa.Connection], T]) -> T:
        """Run `fn` on a reading connection, in a short transaction of its own."""
        ...

    def attach(self, outbox: Outbox) -> None:
        """Say where work and signals go; before the first transaction that has any."""
        ...

    async def close(self) -> None: ...


async def decided(operation: Awaitable[T]) -> T:
    """Await to the end even when cancelled, and only then pass the cancellation on."""
    inner = asyncio.ensure_future(operation)
    try:
        return await asyncio.shield(inner)
    except asyncio.CancelledError:
        while not inner.done():
            try:
                await asyncio.wait({inner})
            except asyncio.CancelledError:
                continue
        if not inner.cancelled():
            inner.exception()
        raise
