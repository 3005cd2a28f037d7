"""A worker's presence: a row that is renewed, and a lock that ends with the connection that holds it.

Both live in a thread of their own, so that a tool that blocks the event loop does not look like a dead process.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import sqlalchemy as sa
import structlog

from outlast import ids
from outlast.clock import monotonic
from outlast.engines.process import place
from outlast.errors import AttemptLost
from outlast.ids import WorkerId
from outlast.store.postgres.connection import connect
from outlast.store.postgres.database import FOREIGN, unavailable
from outlast.store.repositories.agents import FROZEN_SECONDS, encode, lock_key

log = structlog.get_logger("outlast.engine")

RENEW_SECONDS = 1.0
SURE_SECONDS = FROZEN_SECONDS / 2
"""So long after a renewal, a worker knows without asking that nobody takes it for dead."""
_RETRY_SECONDS = 0.1
_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_ENTER = f"INSERT INTO workers (id, host, pid, agents, started_at, seen_at) VALUES ($1, $2, $3, $4, {_NOW}, {_NOW})"
_RENEW = f"UPDATE workers SET seen_at = {_NOW} WHERE id = $1 RETURNING id"
_LOCK = "SELECT pg_try_advisory_lock($1)"
_UNLOCK = "SELECT pg_advisory_unlock_all()"


class Presence:
    """`when_lost` is called on the event loop that started it, with the new name, after others took this one for dead.

    From then on nothing may be claimed under the old name, and what runs under it belongs to somebody else.
    """

    def __init__(
        self, url: sa.URL, worker_id: WorkerId, *, agents: Sequence[str], when_lost: Callable[[WorkerId], None]
    ) -> None:
        self.worker_id = worker_id
        self._agents = encode(agents)
        self._url = url
        self._when_lost = when_lost
        self._thread: threading.Thread | None = None
        self._home: asyncio.AbstractEventLoop | None = None
        self._there: asyncio.AbstractEventLoop | None = None
        self._attention: asyncio.Event | None = None
        self._is_leaving = False
        self._is_entered = False
        self._has_left = False
        self._sure: tuple[WorkerId, float] | None = None
        self._unsure: list[asyncio.Future[None]] = []

    async def start(self) -> None:
        """Returns when others can see this worker."""
        self._home = asyncio.get_running_loop()
        entered: asyncio.Future[None] = self._home.create_future()
        self._thread = threading.Thread(target=self._run, args=(entered,), name="outlast presence")
        self._thread.start()
        try:
            await entered
        except FOREIGN as exc:
            raise unavailable(exc)  # noqa: B904 - it has its cause, or is the error itself

    async def confirm(self, worker_id: WorkerId) -> None:
        """Returns while nobody can have taken the worker of this name for dead; else asks, and waits for the answer.

        Raises AttemptLost after somebody did. A process that was frozen learns here, before it starts what others
        have already told as unknown, that it was.
        """
        while not self._is_sure(worker_id):
            if self.worker_id != worker_id or self._is_leaving:
                raise AttemptLost(f"{worker_id} was taken for dead, or left: what it ran belongs to others.")
            renewed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._unsure.append(renewed)
            self._call_there()
            await renewed

    def _is_sure(self, worker_id: WorkerId) -> bool:
        sure = self._sure
        return sure is not None and sure[0] == worker_id and monotonic() - sure[1] < SURE_SECONDS

    def leave(self) -> None:
        """From now on a row that is gone is no surprise: this worker takes it away itself."""
        self._has_left = True

    async def close(self) -> None:
        """The lock is free when this returns."""
        self._is_leaving = True
        self._call_there()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
        self._answer()

    def _call_there(self) -> None:
        if self._there is not None and self._attention is not None:
            with suppress(RuntimeError):  # its loop has already ended
                self._there.call_soon_threadsafe(self._attention.set)

    def _run(self, entered: asyncio.Future[None]) -> None:
        asyncio.run(self._live(entered))

    def _call_home(self, fn: Callable[..., None], *args: Any) -> None:
        assert self._home is not None
        with suppress(RuntimeError):  # the home loop was closed without a goodbye
            self._home.call_soon_threadsafe(fn, *args)

    async def _live(self, entered: asyncio.Future[None]) -> None:
        self._there = asyncio.get_running_loop()
        self._attention = attention = asyncio.Event()
        while not self._is_leaving:
            try:
                connection = await connect(self._url, name="presence", when_closed=attention.set)
                try:
                    await self._stay(connection, entered, attention)
                finally:
                    self._sure = None
                    connection.terminate()
            except Exception as exc:  # whatever it was: a worker without presence could claim nothing for ever
                if not self._is_entered:
                    self._call_home(_fail, entered, exc)
                    return
                log.warning("presence is away for a moment", worker_id=self.worker_id, error=repr(exc))
                await asyncio.sleep(_RETRY_SECONDS)

    async def _stay(self, connection: Any, entered: asyncio.Future[None], attention: asyncio.Event) -> None:
        """Until the connection ends. A former connection may hold the lock for a while: it is the same process."""
        is_locked = False
        while not self._is_leaving and not connection.is_closed():
            attention.clear()
            asked_at = monotonic()
            is_locked = is_locked or await connection.fetchval(_LOCK, lock_key(self.worker_id))
            if not self._is_entered:
                await self._enter(connection)
                self._call_home(_succeed, entered)
            elif await connection.fetchval(_RENEW, self.worker_id) is None and not self._has_left:
                is_locked = await self._begin_anew(connection)
            if is_locked:
                self._sure = self.worker_id, asked_at
            if self._unsure:
                self._call_home(self._answer)
            with suppress(TimeoutError):
                async with asyncio.timeout(RENEW_SECONDS if is_locked else _RETRY_SECONDS):
                    await attention.wait()

    def _answer(self) -> None:
        unsure, self._unsure = self._unsure, []
        for each in unsure:
            if not each.done():
                each.set_result(None)

    async def _enter(self, connection: Any) -> None:
        await self._write_row(connection, self.worker_id)
        self._is_entered = True

    async def _write_row(self, connection: Any, worker_id: WorkerId) -> None:
        await connection.execute(_ENTER, worker_id, place(), os.getpid(), self._agents)

    async def _begin_anew(self, connection: Any) -> bool:
        """Taken for dead: whatever ran here was given to others. Locked under the new name before it is seen."""
        log.warning("this worker was taken for dead; it goes on under a new name", worker_id=self.worker_id)
        new = ids.worker_id()
        await connection.execute(_UNLOCK)
        is_locked: bool = await connection.fetchval(_LOCK, lock_key(new))
        await self._write_row(connection, new)
        self.worker_id = new
        self._call_home(self._when_lost, new)
        return is_locked


def _succeed(entered: asyncio.Future[None]) -> None:
    if not entered.done():
        entered.set_result(None)


def _fail(entered: asyncio.Future[None], exc: BaseException) -> None:
    if not entered.done():
        entered.set_exception(exc)
