"""A tool asks for one of its owner's connections. What it is given is masked from then on, wherever it goes."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import structlog
from pydantic_ai.exceptions import ToolFailed

from outlast.calls.call import Connections, RunningCall, current_call
from outlast.clock import Clock
from outlast.errors import NotStarted, StoreUnavailable
from outlast.store.database import Database, retry_while_unavailable
from outlast.store.repositories import connections as rows
from outlast.store.repositories.connections import ConnectionRow
from outlast.transitions.tasks import connections
from outlast.values.sealing import Sealing

log = structlog.get_logger("outlast.calls")

USED_EVERY = timedelta(minutes=1)
"""How exact `used_at` is: a connection that is used all the time costs a write a minute."""


class ConnectionRequired(ToolFailed):
    """The call cannot go on without a connection that its owner has not set, or that no key opens."""

    def __init__(
        self,
        provider: str,
        why: str,
        *,
        can_wait: bool = False,
        url: str | None = None,
        seen_at: datetime | None = None,
    ) -> None:
        """`can_wait`: its owner can set it. `seen_at`: when the one was set that cannot be read."""
        super().__init__(why)
        self.provider = provider
        self.can_wait = can_wait
        self.url = url
        self.seen_at = seen_at


@dataclass(frozen=True, slots=True)
class ConnectionSource:
    """The connections of all owners, for the calls of a worker. `sealing` None: no key is set."""

    database: Database
    sealing: Sealing | None
    clock: Clock
    loop: asyncio.AbstractEventLoop
    urls: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where an owner gets a credential, by provider."""

    async def value(self, owner_id: str, provider: str) -> str:
        """Raises `ConnectionRequired` with what to do."""
        value, row = await self._opened(owner_id, provider)
        await self._used(row)
        return value

    async def check(self, owner_id: str, provider: str) -> None:
        """Raises it where there is none that can be opened."""
        await self._opened(owner_id, provider)

    async def _opened(self, owner_id: str, provider: str) -> tuple[str, ConnectionRow]:
        connections.check_provider(provider)
        if self.sealing is None:
            raise ConnectionRequired(provider, connections.NO_KEY)
        look = partial(rows.find, owner_id=owner_id, provider=provider)
        row = await retry_while_unavailable(lambda: self.database.read(look, is_single=True))
        url = self.urls.get(provider)
        if row is None:
            why = f"There is no connection to {provider} yet. {_how_to_set(provider)}"
            raise ConnectionRequired(provider, why, can_wait=True, url=url)
        value = connections.value_of(row, self.sealing)
        if value is None:
            why = f"The connection to {provider} cannot be read: none of the encryption keys opens it."
            words = f"{why} {_how_to_set(provider, again=' again')}"
            raise ConnectionRequired(provider, words, can_wait=True, url=url, seen_at=row.updated_at)
        return value, row

    async def _used(self, row: ConnectionRow) -> None:
        if row.used_at is not None and self.clock.now() - row.used_at < USED_EVERY:
            return
        mark = partial(rows.mark_used, owner_id=row.owner_id, provider=row.provider)
        try:
            await self.database.transaction(mark, name="connection.used")
        except StoreUnavailable as exc:
            log.warning("the use of a connection was not written down", provider=row.provider, error=str(exc))


async def connection(provider: str) -> str:
    """The owner's credential for a provider, such as "github", in a tool: `await outlast.connection("github")`.

    It is starred out wherever something is stored, shown, logged or sent to the model from now on. Where none is set,
    the call of a tool that may be run again waits for it as a task, and is run again when it is set; any other call
    fails, and says how to set one. A sync tool asks with `outlast.connection_sync`.
    """
    call, source = _asked()
    value = await source.value(call.owner_id, provider)
    call.secrets.add(value)
    return value


def connection_sync(provider: str) -> str:
    """As `outlast.connection`, in a sync tool: it waits in the tool's own thread."""
    call, source = _asked()
    if _has_event_loop():
        raise NotStarted("outlast.connection_sync is for sync tools: write `await outlast.connection(...)` here.")
    value = asyncio.run_coroutine_threadsafe(source.value(call.owner_id, provider), source.loop).result()
    call.secrets.add(value)
    return value


def _asked() -> tuple[RunningCall, Connections]:
    call = current_call.get()
    source = None if call is None else call.connections
    if call is None or source is None:
        raise NotStarted("Connections are there for tools that Outlast runs: this was called outside of one.")
    return call, source


def _has_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _how_to_set(provider: str, again: str = "") -> str:
    return f"Its owner sets it{again} with `outlast connections set {provider}`."
