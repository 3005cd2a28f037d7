"""An opened store for tests, and the few steps that most of them begin with."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import sqlalchemy as sa

from outlast import ids
from outlast.clock import Clock, SystemClock
from outlast.events.event import Draft, Event
from outlast.events.types import EventType
from outlast.ids import SessionId
from outlast.limits import Limits
from outlast.store import urls
from outlast.store.database import Database
from outlast.store.outbox import Committed, SilentOutbox, Work
from outlast.store.postgres.opening import open_postgres
from outlast.store.repositories import events, sessions
from outlast.store.sqlite import opening
from outlast.store.tables import events as event_rows
from outlast.store.unit import Unit

OWNER = "olga"


@asynccontextmanager
async def opened(url: str, *, clock: Clock | None = None) -> AsyncGenerator[Database]:
    """The database behind a URL, brought to the current schema."""
    parsed = urls.parse(url)
    database: Database
    if parsed.get_backend_name() == "sqlite":
        path = urls.sqlite_path(parsed)
        database = await opening.open_sqlite(path, clock=clock or SystemClock(), durability="normal")
    else:
        database = await open_postgres(parsed)
    try:
        yield database
    finally:
        await database.close()


async def new_session(database: Database, *, owner_id: str = OWNER) -> SessionId:
    session_id = ids.session_id()

    def create(unit: Unit) -> None:
        sessions.insert(unit, session_id, owner_id=owner_id, agent="agent", model=None, title=None, metadata={})

    await database.transaction(create, name="create")
    return session_id


async def append(database: Database, session_id: SessionId, *drafts: Draft) -> int:
    return await database.transaction(lambda unit: unit.append(session_id, drafts), name="append")


def note(text: object) -> Draft:
    """Any event that is easy to tell from others."""
    return Draft(EventType.SESSION_HELD, {"reason": str(text)})


async def stored_events(database: Database, session_id: SessionId, *, after: int = 0) -> list[Event]:
    return await database.read(lambda connection: events.page(connection, session_id, after))


async def stored_notes(database: Database, session_id: SessionId) -> list[str]:
    return [event.data["reason"] for event in await stored_events(database, session_id)]


async def count_events(database: Database) -> int:
    return await database.read(
        lambda connection: connection.execute(sa.select(sa.func.count()).select_from(event_rows)).scalar_one()
    )


class Outbox(SilentOutbox):
    """Remembers what was enqueued inside transactions and what was handed on after commits."""

    def __init__(self) -> None:
        self.enqueued: list[Work] = []
        self.delivered: list[Committed] = []

    def enqueue(self, unit: Unit, work: Sequence[Work]) -> None:
        self.enqueued += work

    def deliver(self, committed: Committed) -> None:
        self.delivered.append(committed)


class HeldWriter:
    """Keeps SQLite's writer busy, so that whatever is sent meanwhile shares the next commit."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._has_begun = threading.Event()
        self._may_go_on = threading.Event()
        self._holding: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Callable[[], None]:
        def hold(unit: Unit) -> None:
            self._has_begun.set()
            assert self._may_go_on.wait(timeout=60)

        self._holding = asyncio.create_task(self._database.transaction(hold, name="hold the writer"))
        assert await asyncio.to_thread(self._has_begun.wait, 30)
        return self._may_go_on.set

    async def __aexit__(self, *_: Any) -> None:
        self._may_go_on.set()
        assert self._holding is not None
        await self._holding


async def started(*coroutines: Any) -> list[asyncio.Task[Any]]:
    """Each runs until it first waits, in order."""
    running: list[asyncio.Task[Any]] = []
    for each in coroutines:
        running.append(asyncio.create_task(each))
        await asyncio.sleep(0)
    return running


def under(limits: Limits, unit: Unit) -> Unit:
    """The same unit of work, with these limits in place of its database's."""
    unit.limits = limits
    return unit
