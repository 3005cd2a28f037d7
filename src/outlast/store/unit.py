"""The unit of work: one transaction's connection, clock, locked sessions, events, work and signals.

Events and work go into the same commit as the state they tell of; signals are sent after it.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from functools import cache
from typing import Any, Protocol

import sqlalchemy as sa
from pydantic_core import to_json

from outlast.clock import to_microseconds
from outlast.errors import NotFound
from outlast.events.event import Draft, Event
from outlast.events.signals import feed_topic
from outlast.events.types import FED
from outlast.ids import SessionId, TaskId, TurnId
from outlast.store import tables
from outlast.store.statement import Statement


@dataclass(slots=True, eq=False, weakref_slot=True)
class Work:
    """Something for the engine to start: one attempt of a turn or of a task, not before an instant if it has one.

    `claim` is there if the commit claimed it too. What is of higher `priority` is started first, where work waits.
    """

    id: TurnId | TaskId
    owner_id: str
    agent: str
    not_before: datetime | None = None
    claim: object | None = None
    priority: int = 0


@dataclass(slots=True)
class Committed:
    """What a commit made true, handed on after it: lose it and nothing but time is lost."""

    events: list[Event] = field(default_factory=list[Event])
    work: list[Work] = field(default_factory=list[Work])
    signals: list[str] = field(default_factory=list[str])


class Outbox(Protocol):
    """Where a unit's work and signals go."""

    def enqueue(self, unit: "Unit", work: Sequence[Work]) -> None:
        """Inside the transaction, before its commit. May change what the unit locked, and append events."""
        ...

    def deliver(self, committed: Committed) -> None:
        """On the event loop, after the commit."""
        ...


class SilentOutbox:
    """No engine and no readers in this process; whoever looks at the rows finds everything."""

    def enqueue(self, unit: "Unit", work: Sequence[Work]) -> None:
        return

    def deliver(self, committed: Committed) -> None:
        return


class LockedSession:
    """A session's row, locked until the commit. Set attributes through `set`; they are written once."""

    def __init__(self, row: dict[Any, Any]) -> None:
        self._row = row
        self.changes: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        try:
            return self._row[name]
        except KeyError:
            raise AttributeError(name) from None

    def set(self, **values: Any) -> None:
        self._row.update(values)
        self.changes.update(values)

    def next(self, counter: str, by: int = 1) -> int:
        """The next number of a counter column of this session."""
        value = self._row[counter] + by
        self.set(**{counter: value})
        return value


class OwnerLock(IntEnum):
    """What is decided for an owner as a whole, by one transaction after the other. Taken in this order."""

    ADMISSION = 1
    FEED = 2


class Unit:
    """One transaction. Repositories take it, or its `connection`; it lives on one thread and is not kept."""

    def __init__(self, connection: sa.Connection, now: datetime, *, is_serial: bool = False) -> None:
        self.connection = connection
        self.is_serial = is_serial
        """No other transaction runs meanwhile: what was read before a lock is still true after it."""
        self.now = now
        self.now_us = to_microseconds(now)
        self.committed = Committed()
        self._locked: dict[SessionId, LockedSession] = {}
        self._locked_owners: set[tuple[str, OwnerLock]] = set()
        self._rows: list[tuple[Any, ...]] = []
        self._fed: list[tuple[Any, ...]] = []

    def lock(self, session_id: SessionId, *, owner_id: str | None = None) -> LockedSession:
        """Lock the session first, before anything is read in order to decide.

        Another owner's id, an unknown id and that of a deleted session raise the same `NotFound`.
        """
        session = self._locked.get(session_id)
        if session is None:
            statement = _LOCK if owner_id is None else _LOCK_OWNED
            row = statement.first(self.connection, id=session_id, owner=owner_id)
            if row is None:
                raise NotFound("There is no such session.", id=session_id)
            session = self._locked[session_id] = LockedSession(dict(row))
        elif owner_id is not None and session.owner_id != owner_id:
            raise NotFound("There is no such session.", id=session_id)
        return session

    def try_lock(self, session_id: SessionId) -> bool:
        """For work that may find its session deleted: then there is nothing left to do."""
        try:
            self.lock(session_id)
        except NotFound:
            return False
        return True

    def has_locked(self, session_id: SessionId) -> bool:
        return session_id in self._locked

    def lock_owner(self, owner_id: str, what: OwnerLock) -> None:
        """After the session's lock. Until the commit nobody else decides the same for this owner."""
        if not self.is_serial and (owner_id, what) not in self._locked_owners:
            self._locked_owners.add((owner_id, what))
            # Two owners may share a number: then they wait for each other, and nothing else happens.
            owner = zlib.crc32(owner_id.encode()) - 2**31
            self.connection.execute(_LOCK_OWNER, {"what": int(what), "owner": owner})

    def append(self, session_id: SessionId, drafts: Sequence[Draft]) -> int:
        """Number the events, in order; they are written at the end of this transaction. Gives the last number."""
        session = self.lock(session_id)
        number: int = session.last_event
        for draft in drafts:
            number += 1
            type_, data = draft.type.value, to_json(draft.data).decode()
            self._rows.append((session_id, number, type_, self.now_us, draft.turn_id, draft.task_id, data))
            if draft.type in FED:
                self._fed.append((session.owner_id, session_id, number, type_, self.now_us))
            self.committed.events.append(
                Event(session_id, number, type_, self.now, draft.data, draft.turn_id, draft.task_id)
            )
        session.set(last_event=number)
        return number

    def submit(self, work: Work) -> None:
        self.committed.work.append(work)

    def signal(self, topic: str) -> None:
        self.committed.signals.append(topic)

    def flush(self, outbox: Outbox) -> None:
        """Write what was collected: the last statements before the commit."""
        if self.committed.work:
            outbox.enqueue(self, self.committed.work)
        for session_id, session in self._locked.items():
            if session.changes:
                values = {"updated_at": self.now_us, **session.changes}
                _update_session(tuple(values)).run(self.connection, key=session_id, **values)
        if self._rows:
            self._write_events()
        if self._fed:
            self._feed()

    def _write_events(self) -> None:
        if self.connection.dialect.name == "postgresql" and len(self._rows) > 1:
            # One statement with an array a column takes less than one execution a row.
            columns = tuple(list(column) for column in zip(*self._rows, strict=True))
            self.connection.exec_driver_sql(_UNNEST_EVENTS, columns)
        else:
            _INSERT_EVENTS.write(self.connection, self._rows)

    def _feed(self) -> None:
        """Last of all: an owner's feed is numbered in the order of commits, so others wait from here to the commit."""
        for owner_id in sorted({row[0] for row in self._fed}):
            self.lock_owner(owner_id, OwnerLock.FEED)
            self.signal(feed_topic(owner_id))
        _INSERT_FEED.write(self.connection, self._fed)


_BY_ID = (
    sa.select(tables.sessions)
    .where(tables.sessions.c.id == sa.bindparam("id"), tables.sessions.c.deleted_at.is_(None))
    .with_for_update()
)
_LOCK = Statement(_BY_ID)
_LOCK_OWNED = Statement(_BY_ID.where(tables.sessions.c.owner_id == sa.bindparam("owner")))
_LOCK_OWNER = sa.text("SELECT pg_advisory_xact_lock(CAST(:what AS integer), CAST(:owner AS integer))")
_EVENT_COLUMNS = ("session_id", "number", "type", "at", "turn_id", "task_id", "data")
_INSERT_EVENTS = Statement(sa.insert(tables.events).inline(), _EVENT_COLUMNS)
_INSERT_FEED = Statement(sa.insert(tables.feed).inline(), ("owner_id", "session_id", "event", "type", "at"))
_UNNEST_EVENTS = (
    f"INSERT INTO events ({', '.join(_EVENT_COLUMNS)}) SELECT * FROM "
    "unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[])"
)


@cache
def _update_session(names: tuple[str, ...]) -> Statement:
    update = sa.update(tables.sessions).where(tables.sessions.c.id == sa.bindparam("key"))
    return Statement(update.values({name: sa.bindparam(name) for name in names}))
