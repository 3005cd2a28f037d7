"""Sessions: conversations that outlive processes; each has one owner. What is being deleted is no longer there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from pydantic_core import to_json
from sqlalchemy.dialects import postgresql, sqlite

from outlast import paging
from outlast.clock import from_microseconds
from outlast.ids import OwnerId, SessionId, TurnId
from outlast.paging import Page
from outlast.store.repositories import agents, constraints, counted, interrupted, searched
from outlast.store.repositories.counted import NOTHING_OPEN, Counts, LastTurn
from outlast.store.sql.statement import Row, Statement
from outlast.store.tables import sessions, turns
from outlast.store.unit import Unit
from outlast.tool_hints import UNSET, Unset
from outlast.values import row_json


@dataclass(frozen=True, slots=True)
class SessionRow:
    id: SessionId
    owner_id: OwnerId
    agent: str
    model: str | None
    title: str | None
    metadata: Mapping[str, Any]
    external_id: str | None
    turn_id: TurnId | None
    turn_state: str | None
    """Of the turn that is not over: queued or running."""
    is_held: bool
    is_archived: bool
    woken_turns: int
    last_event: int
    answered_event: int
    read_event: int
    budget: timedelta | Unset | None
    created_at: datetime
    updated_at: datetime
    interrupted_calls: Sequence[Mapping[str, Any]] = ()
    """Those that nobody has settled yet."""
    preview: str | None = None
    """The first words of its first message."""
    permissions: Mapping[str, Any] | None = None
    is_dry_run: bool = False
    binding: Mapping[str, Any] | None = None
    parent_id: SessionId | None = None
    """The session that it works for."""
    last_turn: LastTurn | None = None
    """Of those that are over."""
    counts: Counts = NOTHING_OPEN
    is_titled_by_model: bool = False
    has_worker: bool = True
    """False: its turn waits, and no living worker has its agent."""


def from_row(row: Row, agents_there: frozenset[str] | None = None) -> SessionRow:
    return SessionRow(
        id=SessionId(row["id"]),
        owner_id=OwnerId(row["owner_id"]),
        agent=row["agent"],
        model=row["model"],
        title=row["title"],
        metadata=row_json.read_object(row["metadata"]),
        external_id=row["external_id"],
        turn_id=row["turn_id"],
        turn_state=row["turn_state"],
        is_held=row["is_held"],
        is_archived=row["is_archived"],
        woken_turns=row["woken_turns"],
        last_event=row["last_event"],
        answered_event=row["answered_event"],
        read_event=row["read_event"],
        budget=budget_of(row["budget_seconds"]),
        created_at=from_microseconds(row["created_at"]),
        updated_at=from_microseconds(row["updated_at"]),
        interrupted_calls=interrupted.decode(row["interrupted_calls"]),
        preview=row["preview"],
        permissions=constraints.read_object(row["permissions"]),
        is_dry_run=row["is_dry_run"],
        binding=constraints.read_object(row["binding"]),
        parent_id=row["parent_id"],
        last_turn=counted.last_turn(row),
        counts=counted.counts(row),
        is_titled_by_model=bool(row["is_titled_by_model"]),
        has_worker=agents_there is None or row["turn_state"] != _QUEUED or row["agent"] in agents_there,
    )


_QUEUED = "queued"


def _from_rows(connection: sa.Connection, rows: Sequence[Row]) -> list[SessionRow]:
    """Workers are looked at only for what waits."""
    is_waiting = any(row["turn_state"] == _QUEUED for row in rows)
    there = agents.present(connection) if is_waiting else None
    return [from_row(row, there) for row in rows]


NO_BUDGET = -1.0
"""How "no budget: wait for every call" is stored; NULL means the default."""


def budget_of(stored: float | None) -> timedelta | Unset | None:
    if stored is None:
        return UNSET
    return None if stored == NO_BUDGET else timedelta(seconds=stored)


def _stored(budget: timedelta | Unset | None) -> float | None:
    if isinstance(budget, Unset):
        return None
    return NO_BUDGET if budget is None else budget.total_seconds()


def insert(
    unit: Unit,
    session_id: SessionId,
    *,
    owner_id: str,
    agent: str,
    model: str | None,
    title: str | None,
    metadata: Mapping[str, Any],
    budget: timedelta | Unset | None = UNSET,
    external_id: str | None = None,
    preview: str | None = None,
    permissions: str | None = None,
    is_dry_run: bool = False,
    binding: Mapping[str, Any] | None = None,
    resource: str | None = None,
    parent_id: SessionId | None = None,
) -> bool:
    """False when the owner has a session with this external id or resource by now: then there is nothing new."""
    made = _INSERT[unit.dialect].run(
        unit.connection,
        id=session_id,
        owner_id=owner_id,
        parent_id=parent_id,
        agent=agent,
        model=model,
        title=title,
        metadata=row_json.write(metadata),
        budget_seconds=_stored(budget),
        turn_id=None,
        is_held=False,
        woken_turns=0,
        first_event=1,
        last_event=0,
        last_message=0,
        last_input=0,
        external_id=external_id,
        preview=preview,
        permissions=permissions,
        is_dry_run=is_dry_run,
        binding=None if binding is None else row_json.write(binding),
        resource=resource,
        created_at=unit.now_us,
        updated_at=unit.now_us,
    )
    if made == 1 and title is not None:
        searched.keep(unit, session_id, searched.TITLE, title, owner_id=owner_id)
    return made == 1


def _insert(given: sqlite.Insert | postgresql.Insert) -> Statement:
    later = ("is_archived", "answered_event", "read_event", "interrupted_calls", "is_titled_by_model", "deleted_at")
    columns = [column.name for column in sessions.c if column.name not in later]
    return Statement(given.on_conflict_do_nothing().inline(), columns)


_INSERT = {"sqlite": _insert(sqlite.insert(sessions)), "postgresql": _insert(postgresql.insert(sessions))}


_FOUND = sa.select(sessions, turns.c.state.label("turn_state"), *counted.COLUMNS).select_from(
    counted.joined(sessions.outerjoin(turns, turns.c.id == sessions.c.turn_id))
)
_GET = Statement(
    _FOUND.where(
        sessions.c.id == sa.bindparam("id"),
        sessions.c.owner_id == sa.bindparam("owner"),
        sessions.c.deleted_at.is_(None),
    )
)
_NAMED = sa.select(sessions.c.id).where(
    sessions.c.owner_id == sa.bindparam("owner"),
    sessions.c.external_id == sa.bindparam("external"),
    sessions.c.deleted_at.is_(None),
)

_BOUND = sa.select(sessions.c.id).where(
    sessions.c.owner_id == sa.bindparam("owner"),
    sessions.c.resource == sa.bindparam("resource"),
    sessions.c.deleted_at.is_(None),
)


def get(connection: sa.Connection, session_id: SessionId, owner_id: str) -> SessionRow | None:
    row = _GET.first(connection, id=session_id, owner=owner_id)
    return None if row is None else _from_rows(connection, [row])[0]


def agent_of(connection: sa.Connection, session_id: SessionId) -> str:
    return connection.execute(sa.select(sessions.c.agent).where(sessions.c.id == session_id)).scalar_one()


def named(connection: sa.Connection, owner_id: str, external_id: str) -> SessionId | None:
    """The owner's session with this external id."""
    found = connection.execute(_NAMED, {"owner": owner_id, "external": external_id}).scalar_one_or_none()
    return None if found is None else SessionId(found)


def of_resource(connection: sa.Connection, owner_id: str, resource: str) -> SessionId | None:
    """The owner's session that was made for this resource."""
    found = connection.execute(_BOUND, {"owner": owner_id, "resource": resource}).scalar_one_or_none()
    return None if found is None else SessionId(found)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which sessions a list shows. None: whatever it is."""

    search: str | None = None
    """Part of the title or of a person's message, in any case."""
    metadata: Mapping[str, str | int | float | bool | None] | None = None
    """Values that top-level keys must have."""
    is_archived: bool | None = False
    external_id: str | None = None
    agent: str | None = None
    parent: str | None = None
    """The sub-sessions of this one; without it, sessions that work for none."""


def page(
    connection: sa.Connection,
    owner_id: str,
    *,
    limit: int,
    before: str | None = None,
    wanted: Wanted | None = None,
) -> Page[SessionRow]:
    """Latest change first. One that changes while a list is read moves to its front: it is not given twice."""
    wanted = wanted or Wanted(is_archived=None)
    query, owner, parent = _FOUND.where(sessions.c.deleted_at.is_(None)), sessions.c.owner_id, sessions.c.parent_id
    if wanted.search:
        few = searched.found(connection, owner_id, wanted.search)
        query = query.where(searched.mentions(wanted.search) if few is None else sessions.c.id.in_(few))
        if few is not None:
            # Without their indexes: SQLite would rather go through all sessions of an owner than look up some ids.
            owner, parent = owner.op("||")(""), parent.op("||")("")
    query = query.where(owner == owner_id)
    for name, value in (wanted.metadata or {}).items():
        query = query.where(_has(connection.dialect.name, name, value))
    if wanted.is_archived is not None:
        query = query.where(sessions.c.is_archived if wanted.is_archived else ~sessions.c.is_archived)
    if wanted.external_id is not None:
        query = query.where(sessions.c.external_id == wanted.external_id)
    else:
        query = query.where(parent.is_(None) if wanted.parent is None else parent == wanted.parent)
    if wanted.agent is not None:
        query = query.where(sessions.c.agent == wanted.agent)
    if before is not None:
        at, last = paging.position(before, int, str)
        same = sa.and_(sessions.c.updated_at == at, sessions.c.id < last)
        query = query.where(sa.or_(sessions.c.updated_at < at, same))
    query = query.order_by(sessions.c.updated_at.desc(), sessions.c.id.desc()).limit(limit + 1)
    rows = connection.execute(query).mappings().all()
    shown = rows[:limit]
    has_more = len(rows) > limit
    following = paging.cursor(shown[-1]["updated_at"], shown[-1]["id"]) if has_more else None
    return Page(_from_rows(connection, shown), following)


def _has(dialect: str, name: str, value: str | int | float | bool | None) -> sa.ColumnElement[bool]:
    """Whether the metadata has this value under a top-level key; numbers are compared as numbers."""
    if dialect == "postgresql":
        field = sa.cast(sessions.c.metadata, postgresql.JSONB).op("->")(sa.cast(name, sa.Text))
        return field == sa.cast(sa.literal(to_json(value).decode(), sa.Text), postgresql.JSONB)
    fields = sa.func.json_each(sessions.c.metadata).table_valued("key", "type", "atom", name="field")
    found = sa.select(sa.literal(1)).select_from(fields).where(fields.c.key == name)
    match value:
        case None:
            return found.where(fields.c.type == "null").exists()
        case bool():
            return found.where(fields.c.type == ("true" if value else "false")).exists()
        case str():
            return found.where(fields.c.type == "text", fields.c.atom == value).exists()
        case _:
            return found.where(fields.c.type.in_(("integer", "real")), fields.c.atom == value).exists()


_NONE_OF_THEM = Statement(sa.select(sessions.c.id).where(sa.false()).with_for_update())


def check_writable(unit: Unit) -> None:
    """A server that only reads refuses to lock for a change."""
    _NONE_OF_THEM.rows(unit.connection)
