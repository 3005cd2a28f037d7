"""Signals between processes: LISTEN and NOTIFY on one connection, beside the pool."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
import structlog
from pydantic_core import from_json, to_json

from outlast.clock import monotonic
from outlast.events.news import News
from outlast.events.signals import LocalSignals
from outlast.store.postgres.connection import connect
from outlast.store.postgres.database import FOREIGN, unavailable

log = structlog.get_logger("outlast.signals")

CHANNEL = "outlast_signals"
_BATCH_SECONDS = 0.005
_PAYLOAD_BYTES = 7_900
_RETRY_SECONDS = 0.2
_EVERYTHING = b"[]"
"""What is sent in place of names that are too long or too many: everybody looks."""
_MANY = 10_000


class PostgresSignals(LocalSignals):
    """This process hears its own signals at once, the others a few milliseconds later.

    To the others go names alone: whoever may connect to the database may listen, and need not be one who may read it.
    They are sent after the commit and outside of it: commits that notify wait for each other. A commit that brings
    work notifies in any case, and takes its signals along. Whatever was missed while the connection was away is made
    good by a look at everything.
    """

    def __init__(self, url: sa.URL) -> None:
        super().__init__()
        self._url = url
        self._origin = f"from:{uuid4().hex}"
        self._pending: set[str] = set()
        self._has_more = asyncio.Event()
        self._is_closing = False
        self._living: asyncio.Task[None] | None = None

    async def start(self) -> None:
        try:
            connection = await self._listen()
        except FOREIGN as exc:
            raise unavailable(exc)  # noqa: B904 - it has its cause, or is the error itself
        self._living = asyncio.create_task(self._live(connection), name="signals")

    async def close(self) -> None:
        """Send what is left to say."""
        self._is_closing = True
        self._has_more.set()
        if self._living is not None:
            await asyncio.wait({self._living})

    def publish(self, topics: Iterable[str], news: Sequence[News] = ()) -> None:
        topics = tuple(topics)
        self.announce(topics, news)
        self._pending.update(topics)
        if self._pending:
            self._has_more.set()

    def notice(self, topics: Iterable[str]) -> tuple[str, str] | None:
        said = payloads(topics, self._origin)
        return (CHANNEL, said[0].decode()) if len(said) == 1 else None

    async def _live(self, connection: Any) -> None:
        while True:
            try:
                await self._send_until_closed(connection)
            except Exception as exc:  # whatever it was: who hears nothing is late for ever
                log.warning("signals from other processes are away for a moment", error=repr(exc))
            finally:
                connection.terminate()
            if self._is_closing:
                return
            connection = await self._listen_again()
            if connection is None:
                return
            self.recheck()

    async def _send_until_closed(self, connection: Any) -> None:
        sent_at = float("-inf")
        while not connection.is_closed():
            await self._has_more.wait()
            if not self._is_closing:
                # After a silence at once; what is said in the moments after that goes together.
                await asyncio.sleep(sent_at + _BATCH_SECONDS - monotonic())
            self._has_more.clear()
            sent_at = monotonic()
            # What is said again meanwhile is sent again; what a broken connection swallowed is, too.
            said, self._pending = self._pending, set()
            try:
                for payload in payloads(said):
                    await connection.execute("SELECT pg_notify($1, $2)", CHANNEL, payload.decode())
            except BaseException:
                self._pending |= said
                raise
            if self._is_closing:
                await connection.close()
                return

    async def _listen_again(self) -> Any | None:
        while not self._is_closing:
            try:
                return await self._listen()
            except FOREIGN as exc:
                log.info("cannot listen yet", error=repr(exc))
            await asyncio.sleep(_RETRY_SECONDS)
        return None

    async def _listen(self) -> Any:
        connection = await connect(self._url, name="signals", when_closed=self._has_more.set)
        try:
            await connection.add_listener(CHANNEL, partial(self._hear, connection.get_server_pid()))
        except BaseException:
            connection.terminate()
            raise
        return connection

    def _hear(self, own: int, connection: Any, sender: int, channel: str, payload: str) -> None:
        """Also the last words of a connection that is closed by now."""
        topics = from_json(payload)
        if sender == own or self._origin in topics[:1]:
            return
        if topics:
            self.announce(topics)
        else:
            self.recheck()


def payloads(topics: Iterable[str], *heads: str) -> list[bytes]:
    """JSON lists that a NOTIFY can carry; the first begins with `heads`."""
    chosen = sorted(topics)
    if not chosen:
        return []
    encoded = [to_json(each) for each in (*heads, *chosen)]
    if len(encoded) > _MANY or max(map(len, encoded)) > _PAYLOAD_BYTES - 2:
        return [_EVERYTHING]
    batches: list[list[bytes]] = [[]]
    size = 0
    for each in encoded:
        if size + len(each) + 2 > _PAYLOAD_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(each)
        size += len(each) + 1
    return [b"[" + b",".join(batch) + b"]" for batch in batches]
