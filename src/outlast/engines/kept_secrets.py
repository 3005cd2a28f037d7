"""Registered secrets on every worker and after a restart: kept in the database, encrypted."""

import asyncio
import hmac
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

import structlog

from outlast.errors import StoreUnavailable
from outlast.events.signals import Signals
from outlast.store.database import Database, retry_while_unavailable
from outlast.store.repositories import kept_secrets
from outlast.store.unit import Unit
from outlast.values.sealing import Sealing, Unreadable
from outlast.values.secrets import MOST, Secrets

log = structlog.get_logger("outlast.calls")

TOPIC = "secrets"
LOOK_EVERY = 10.0
"""How long silence is trusted before a process looks for what others registered."""
_PAGE = 1_000
_PLACE = "kept secret"
_FERNET = "gAAAA"
"""How a row of an earlier version begins."""
_ANY = "surrogatepass"


class KeptSecrets:
    """One per runtime. At each start what is known is kept under the first key: so a new key takes over by itself."""

    def __init__(self, database: Database, signals: Signals, secrets: Secrets, sealing: Sealing) -> None:
        self._sealing = sealing
        self._database = database
        self._signals = signals
        self._secrets = secrets
        self._new: deque[str] = deque()
        self._is_new = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._read_to = 0
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """What others know is known here when this returns."""
        heard = self._signals.subscribe(TOPIC)
        await self._read()
        self._new.extend(self._secrets.values())
        self._is_new.set()
        self._secrets.when_added = self._added

        async def follow() -> None:
            while True:
                await heard.wait(LOOK_EVERY)
                await retry_while_unavailable(self._read)

        async def write() -> None:
            while True:
                await self._is_new.wait()
                self._is_new.clear()
                await retry_while_unavailable(self._write)

        self._tasks = [
            asyncio.create_task(follow(), name="secrets of others"),
            asyncio.create_task(write(), name="secrets to keep"),
        ]

    async def close(self) -> None:
        """What was registered here is kept, if the database is there."""
        self._secrets.when_added = None
        for each in self._tasks:
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(StoreUnavailable):
            await self._write()

    def _added(self, value: str) -> None:
        self._new.append(value)
        self._loop.call_soon_threadsafe(self._is_new.set)

    async def _write(self) -> None:
        values = list(self._new)
        if not values:
            return
        rows = await asyncio.to_thread(self._encrypted, values)

        def write(unit: Unit) -> None:
            kept_secrets.add(unit, rows, most=MOST)
            unit.signal(TOPIC)

        await self._database.transaction(write, name="secrets")
        for _ in values:
            self._new.popleft()

    async def _read(self) -> None:
        while True:
            found = await self._database.read(
                lambda connection: kept_secrets.after(connection, self._read_to, limit=_PAGE), is_single=True
            )
            if not found:
                return
            unreadable = await asyncio.to_thread(self._learn, [each.value for each in found])
            if unreadable:
                log.warning("secrets of other keys cannot be read: add those to encryption_keys", count=unreadable)
            self._read_to = found[-1].number

    def _encrypted(self, values: Sequence[str]) -> list[tuple[str, str]]:
        return [(self._mark(each), self._sealing.seal(each, _PLACE)) for each in values]

    def _learn(self, values: Sequence[str]) -> int:
        """Gives how many no key of this process opens."""
        unreadable = 0
        for each in values:
            try:
                is_early = each.startswith(_FERNET)
                open_ = self._sealing.open_fernet(each) if is_early else self._sealing.open(each, _PLACE)
                self._secrets.learn(open_)
            except Unreadable:
                unreadable += 1
        return unreadable

    def _mark(self, value: str) -> str:
        """Tells nobody anything who has not the key."""
        return hmac.digest(self._sealing.mark_key, value.encode(errors=_ANY), "sha256").hex()
