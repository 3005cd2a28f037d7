"""The unit of work: one transaction's connection, clock, locked sessions, events, work and signals.

Events and work go into the same commit as the state they tell of; signals are sent after it, or with it.
"""

import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from enum import IntEnum
from functools import cache
from typing import Any, TypeVar

import sqlalchemy as sa

from outlast.clock import from_microseconds, to_microseconds
from outlast.errors import NotFound
from outlast.events import foreign
from outlast.events.event import Draft, Event, JsonObject
from outlast.events.signals import feed_topic
from outlast.events.types import FED
from outlast.ids import SessionId, WorkerId
from outlast.limits import Limits
from outlast.store import removed_sessions, tables, told_outside
from outlast.store.locked_session import LockedSession
from outlast.store.outbox import Committed, Outbox, SilentOutbox, Work
from outlast.store.sql.batch import Batch
from outlast.store.sql.bulk import ManyRows, insert_many, update_many
from outlast.store.sql.statement import Row, Statement, Write, given_keys
from outlast.values import row_json
from outlast.values.secrets import Secrets

T = TypeVar("T")


class OwnerLock(IntEnum):
    """What is decided for an owner as a whole, by one transaction after the other. Taken in this order."""

    ADMISSION = 1
    FEED = 2


class Unit:
    """One transaction. Repositories take it, or its `connection`; it lives on one thread and is not kept."""

    def __init__(
        self,
        connection: sa.Connection,
        now: datetime | None = None,
        *,
        outbox: Outbox | None = None,
        limits: Limits | None = None,
        secrets: Secrets | None = None,
        is_serial: bool = False,
    ) -> None:
        """`now` None: the database says what time it is."""
        self.limits = limits or Limits()
        self._secrets = secrets or Secrets()
        self._outbox = outbox or SilentOutbox()
        self._connection = connection
        self.dialect = connection.dialect.name
        self._is_remote = self.dialect == "postgresql"
        self.is_serial = is_serial
        """No other transaction runs meanwhile: what was read before a lock is still true after it."""
        self._now = now
        self._now_us = None if now is None else to_microseconds(now)
        self._transaction_id: str | None = None
        self._batch = Batch()
        self.committed = Committed()
        self.expected: list[Work] = []
        """What was to be claimed as it is made."""
        self._locked: dict[SessionId, LockedSession] = {}
        self._locked_owners: set[tuple[str, OwnerLock]] = set()
        self._fed: list[tuple[Any, ...]] = []
        self._outside: list[dict[str, Any]] = []
        self._asked: dict[Callable[[sa.Connection], Any], Any] = {}
        self._proof: Callable[[sa.Connection], bool] | None = None

    @property
    def connection(self) -> sa.Connection:
        """Whatever was written before is there for what is asked through it."""
        if self._batch:
            self._batch.run(self._connection)
        return self._connection

    def reading(self, *tables: sa.Table) -> sa.Connection:
        """The connection for a read of these tables alone: what waits to be written to others may wait on."""
        return self.connection if any(self._batch.touches(table.name) for table in tables) else self._connection

    @property
    def driver(self) -> Any:
        """The driver's own connection, on which the transaction has begun, for what shares no table with this store."""
        assert self.transaction_id
        return self._connection.connection.driver_connection

    @property
    def now(self) -> datetime:
        if self._now is None:
            self._begin()
            assert self._now is not None
        return self._now

    @property
    def now_us(self) -> int:
        if self._now_us is None:
            self._now_us = to_microseconds(self.now)
        return self._now_us

    @property
    def transaction_id(self) -> str:
        """The server's name for this transaction. It has begun there, for whoever else uses its connection."""
        if self._transaction_id is None:
            self._begin()
            assert self._transaction_id is not None
        return self._transaction_id

    def _begin(self) -> None:
        self._noted(_BEGIN.rows(self._connection)[0])

    def _noted(self, row: Row) -> None:
        self._now = self._now or from_microseconds(row["begun_at"])
        self._transaction_id = row["transaction_id"]

    def write(self, statement: Statement, **values: Any) -> None:
        """Change rows when it is next asked for anything, or at the end: nobody waits for the answer.

        For rows of a session that is locked. `Batch` says what else may be in one.
        """
        if self._is_remote:
            self._write_later(statement.with_values(self._connection.dialect, **values))
        else:
            statement.run(self._connection, **values)

    def write_many(self, many: ManyRows, rows: Sequence[Sequence[Any]]) -> None:
        """The same for many rows."""
        if self._is_remote:
            self._write_later(many.later(rows))
        else:
            many.run(self._connection, rows)

    def _write_later(self, write: Write) -> None:
        if not self._batch.takes(write):
            self._batch.run(self._connection)
        self._batch.add(write)

    def lock(self, session_id: SessionId, *, owner_id: str | None = None) -> LockedSession:
        """Lock the session first, before anything is read in order to decide.

        Another owner's id, an unknown id and that of a deleted session raise the same `NotFound`.
        """
        session = self._locked.get(session_id)
        if session is None:
            is_first = self._is_remote and self._transaction_id is None
            row = _lock(is_owned=owner_id is not None, is_first=is_first).first(
                self.reading(tables.sessions), id=session_id, owner=owner_id
            )
            if row is None:
                raise removed_sessions.no_such_session(self._connection, session_id, owner_id)
            if is_first:
                self._noted(row)
            session = self._locked[session_id] = LockedSession(dict(row))
        elif owner_id is not None and session.owner_id != owner_id:
            raise NotFound("There is no such session.", id=session_id)
        return session

    def lock_free(self, session_ids: Iterable[SessionId]) -> None:
        """Those that are there and that nobody else holds: who locks many at once waits for none of them.

        One may be held by a process that is frozen; all the others would wait for it too.
        """
        chosen = sorted(set(session_ids))
        if not self._is_remote:
            for each in chosen:
                self.try_lock(each)
            return
        is_first = self._transaction_id is None
        for row in _lock_free(is_first=is_first).rows(self.reading(tables.sessions), ids=chosen):
            if is_first:
                self._noted(row)
            self._locked.setdefault(row["id"], LockedSession(dict(row)))

    def lock_some(self, session_ids: Collection[SessionId], *, is_alone: bool) -> None:
        """Those that are there: one that `is_alone` is waited for, others only if nobody else holds them."""
        if is_alone:
            for each in session_ids:
                self.try_lock(each)
        else:
            self.lock_free(session_ids)

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
            # With what waits to be written. What is asked after it sees what was committed before the lock was free.
            self._batch.add(Write("", _LOCK_OWNER, (int(what), _number_of(owner_id)), is_insert=False))
            self._batch.run(self._connection)

    def append(self, session_id: SessionId, drafts: Sequence[Draft]) -> int:
        """Number the events, in order; they are written at the end of this transaction, without registered values.

        Gives the last number.
        """
        session = self.lock(session_id)
        number = session.last_event
        for draft in drafts:
            number += 1
            type_ = draft.type.value
            told, data = row_json.written(foreign.masked(type_, draft.data, self._secrets))
            self.committed.rows.append((session_id, number, type_, self.now_us, draft.turn_id, draft.task_id, data))
            if draft.type in FED:
                self._fed.append((session.owner_id, session_id, number, type_, self.now_us))
            if draft.type in told_outside.OUTSIDE:
                self._outside.append(self._for_webhooks(session, number, draft, told))
            self.committed.events.append(Event(session_id, number, type_, self.now, told, draft.turn_id, draft.task_id))
        session.set(last_event=number)
        return number

    def _for_webhooks(self, session: LockedSession, number: int, draft: Draft, told: JsonObject) -> dict[str, Any]:
        ids = {"session_id": session.id, "turn_id": draft.turn_id, "task_id": draft.task_id}
        return {
            "session_id": session.id,
            "event": number,
            "owner_id": session.owner_id,
            "hook_owner": session.owner_id,
            "type": draft.type.value,
            "quoted_type": f'%"{draft.type.value}"%',
            "told": row_json.written(told_outside.told_of(draft.type, told, **ids))[1],
            "at": self.now_us,
            "due_at": self.now_us,
            "until": to_microseconds(self.now + told_outside.RETRIED_FOR),
        }

    def once(self, ask: Callable[[sa.Connection], T]) -> T:
        """What many parts of one transaction ask and nothing in it changes: asked the first time."""
        if ask not in self._asked:
            self._asked[ask] = ask(self.connection)
        return self._asked[ask]

    def prove(self, proof: Callable[[sa.Connection], bool]) -> None:
        """For a transaction without events: how it is seen that just this one was committed."""
        self._proof = proof

    def stands(self, connection: sa.Connection) -> bool:
        """Whether what this transaction wrote is there; True when nothing of it can be told from what others write."""
        if not self.committed.rows:
            return self._proof is None or self._proof(connection)
        session_id, number, _, at, *_ = self.committed.rows[-1]
        return _WITNESS.first(connection, session_id=session_id, number=number, at=at) is not None

    def claimant(self, work: Work) -> WorkerId | None:
        """The worker that claims a turn or a task as it is made: one commit does both."""
        self.expected.append(work)
        return self._outbox.claimant(self, work)

    def drop(self) -> None:
        """On the event loop, after it was rolled back."""
        self._outbox.drop(self)

    def submit(self, work: Work) -> None:
        self.committed.work.append(work)

    def signal(self, topic: str) -> None:
        self.committed.signals.append(topic)

    def flush(self) -> None:
        """Write what was collected: the last statements before the commit."""
        if self.committed.work:
            self._outbox.enqueue(self, self.committed.work)
        self._write_sessions()
        if self.committed.rows:
            self.write_many(_INSERT_EVENTS, self.committed.rows)
        for each in self._outside:
            self.write(told_outside.INSERT, **each)
        if self._fed:
            self._feed()
        if self.committed.work:
            self._outbox.notify(self)
        if self._batch:
            self._batch.run(self._connection)

    def _write_sessions(self) -> None:
        changed: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
        for session_id, session in self._locked.items():
            if session.changes:
                values = {"updated_at": self.now_us, **session.changes}
                changed.setdefault(tuple(values), []).append((session_id, *values.values()))
        for names, rows in changed.items():
            self.write_many(_update_sessions(names), rows)

    def notify(self, channel: str, payload: str) -> None:
        """PostgreSQL passes it on when it has committed. It goes with what waits to be written."""
        self._batch.add(Write("", _NOTIFY, (channel, payload), is_insert=False))
        self._batch.run(self._connection)  # of a batch, only the last may be a question

    def _feed(self) -> None:
        """Last of all: an owner's feed is numbered in the order of commits, so others wait from here to the commit."""
        owners = sorted({row[0] for row in self._fed}, key=_number_of)  # all in one order: by the locks they take
        for owner_id in owners:
            self.signal(feed_topic(owner_id))
        if not self._is_remote:
            _INSERT_FEED.run(self._connection, self._fed)
            return
        for owner_id in owners[:-1]:
            self.lock_owner(owner_id, OwnerLock.FEED)
        if self._batch.touches(tables.spending.name):
            self._batch.run(self._connection)  # an owner's row: who waits for it must not hold the lock meanwhile
        columns = (list(column) for column in zip(*self._fed, strict=True))
        values = (int(OwnerLock.FEED), _number_of(owners[-1]), *columns)
        self._write_later(Write("feed", _LOCK_AND_FEED, values, is_insert=True))


def _number_of(owner_id: str) -> int:
    """Two owners may share a number: then they wait for each other, and nothing else happens."""
    return zlib.crc32(owner_id.encode()) - 2**31


_BY_ID = (
    sa.select(tables.sessions)
    .where(tables.sessions.c.id == sa.bindparam("id"), tables.sessions.c.deleted_at.is_(None))
    .with_for_update()
)
_IDS = given_keys("ids")
_FREE = (
    sa.select(tables.sessions)
    .join(_IDS, tables.sessions.c.id == _IDS.c.key)
    .where(tables.sessions.c.deleted_at.is_(None))
    .order_by(tables.sessions.c.id)
    .with_for_update(skip_locked=True, of=tables.sessions)
)
_THIS = (
    sa.literal_column("(extract(epoch FROM clock_timestamp()) * 1000000)::bigint", sa.BigInteger).label("begun_at"),
    sa.literal_column("pg_current_xact_id()::text", sa.Text).label("transaction_id"),
)
_BEGIN = Statement(sa.select(*_THIS))
_NOTIFY = "SELECT pg_notify($1, $2)"
_LOCK_OWNER = "SELECT pg_advisory_xact_lock($1::integer, $2::integer)"
_EVENT_COLUMNS = ("session_id", "number", "type", "at", "turn_id", "task_id", "data")
_INSERT_EVENTS = insert_many(tables.events, _EVENT_COLUMNS)
_WITNESS = Statement(
    sa.select(tables.events.c.number).where(
        tables.events.c.session_id == sa.bindparam("session_id"),
        tables.events.c.number == sa.bindparam("number"),
        tables.events.c.at == sa.bindparam("at"),
    )
)
_FEED_COLUMNS = ("owner_id", "session_id", "event", "type", "at")
_INSERT_FEED = insert_many(tables.feed, _FEED_COLUMNS)
_LOCK_AND_FEED = (
    f"INSERT INTO feed ({', '.join(_FEED_COLUMNS)}) SELECT line.* "
    "FROM (SELECT pg_advisory_xact_lock($1::integer, $2::integer) OFFSET 0) AS owner_lock, "
    "unnest($3::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[]) AS line"
)
"""Numbers are given to lines after the lock is: they come from what is joined with it."""


@cache
def _lock(*, is_owned: bool, is_first: bool) -> Statement:
    query = _BY_ID.where(tables.sessions.c.owner_id == sa.bindparam("owner")) if is_owned else _BY_ID
    return Statement(query.add_columns(*_THIS) if is_first else query)


@cache
def _lock_free(*, is_first: bool) -> Statement:
    return Statement(_FREE.add_columns(*_THIS) if is_first else _FREE)


@cache
def _update_sessions(names: tuple[str, ...]) -> ManyRows:
    return update_many(tables.sessions, ("id", *names))
