"""A transaction is a function: `await database.transaction(fn)` runs `fn(unit)` and commits it, or nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol, TypeVar

import sqlalchemy as sa
import structlog

from outlast.backoff import growing
from outlast.clock import monotonic
from outlast.errors import StoreUnavailable
from outlast.limits import Limits
from outlast.store.outbox import Committed, Outbox
from outlast.store.unit import Unit
from outlast.values.redact import error_chain
from outlast.values.secrets import Secrets

T = TypeVar("T")
log = structlog.get_logger("outlast.store")

_FIRST_WAIT = 0.02
_LONGEST_WAIT = 1.0

Moment = Literal["before", "after"]
CommitWatcher = Callable[[str, Moment], Awaitable[object] | None]
"""Told the name of each transaction just before and just after its commit. Tests stop or kill there.

What it gives before a commit of PostgreSQL is awaited; SQLite commits in a thread that it may simply hold up.
"""


class Database(Protocol):
    """The only truth. Two implementations: one SQLite file, or PostgreSQL."""

    watcher: CommitWatcher | None
    limits: Limits
    """What owners may ask for: every unit of work carries them."""
    secrets: Secrets
    """Masked in every event before it is written, whoever appends it."""

    async def transaction(self, fn: Callable[[Unit], T], *, name: str) -> T:
        """Run `fn` and commit. Returns only after the commit; raises only if nothing was committed.

        A caller that is cancelled meanwhile gets its `CancelledError` after the commit is decided.
        """
        ...

    async def read(self, fn: Callable[[sa.Connection], T], *, is_single: bool = False) -> T:
        """Run `fn` on a reading connection, in a short transaction of its own.

        `is_single`: it is one statement, or it does not matter whether later ones find what is newer.
        """
        ...

    async def glance(self, fn: Callable[[sa.Connection], T]) -> T:
        """The same for a few rows by their keys, for somebody who waits for them: it does not queue for a thread.

        What later statements find may be newer than what the first one found.
        """
        ...

    def attach(self, outbox: Outbox) -> None:
        """Say where work and signals go; before the first transaction that has any."""
        ...

    def begin_shutdown(self, seconds: float) -> None:
        """This process ends: from then on a store that is away counts as closed, and nobody waits for it."""
        ...

    async def close(self) -> None: ...


class ShutdownDeadline:
    """Tells those who wait for a store when to stop: whoever opens it next finds what they leave."""

    def __init__(self) -> None:
        self._until: float | None = None

    def begin(self, seconds: float) -> None:
        self._until = monotonic() + seconds

    def mark(self, error: BaseException) -> BaseException:
        """The error of a store, as one that no waiting ends if it is too late for that."""
        if self._until is not None and monotonic() >= self._until and isinstance(error, StoreUnavailable):
            error.details = {**error.details, "is_closed": True}
        return error


class Decision(asyncio.Future[T]):
    """Cannot be cancelled: asyncio cancels its waiter when it is decided, and not before."""

    def cancel(self, msg: Any | None = None) -> bool:
        return False

    async def reached(self) -> T:
        try:
            return await self
        except asyncio.CancelledError:
            self.exception()  # nobody else asks for it
            raise


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


async def retry_while_unavailable(operation: Callable[[], Awaitable[T]]) -> T:
    """Again and again while the store is unavailable: running work waits for it instead of failing.

    A store that this process has closed will not come back, so that is raised.
    """
    for wait in growing(_FIRST_WAIT, _LONGEST_WAIT):
        try:
            return await operation()
        except StoreUnavailable as exc:
            if exc.is_closed:
                raise
            log.warning("the store is unavailable: waiting for it", error=str(exc), cause=repr(exc.__cause__))
        await asyncio.sleep(wait)
    raise AssertionError("unreachable: the waits have no end")


def hand_on(outbox: Outbox, committed: Committed) -> None:
    """Tell of a commit. Whoever fails while being told changes nothing: it is committed, and rows can be looked at."""
    try:
        outbox.deliver(committed)
    except Exception as exc:
        log.error("telling of a commit failed", exception=error_chain(exc))
