"""A session as people see it, of one moment: a page of its turns, what waits, its tasks, and where to go on reading.

Only the turns of the page are read, however long the session is; they are folded in a thread.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import sqlalchemy as sa
from pydantic_core import from_json

from outlast.errors import NotFound
from outlast.events.types import EventType
from outlast.handles import reading
from outlast.handles.following.place import Place
from outlast.handles.one_session import view_page
from outlast.handles.one_session.view_page import Moment, ReadTurn
from outlast.handles.services.services import Services
from outlast.ids import OwnerId, SessionId, TurnId
from outlast.store.repositories import events, feed, folds, inputs, task_facts, tasks, turns
from outlast.store.repositories.turns import Origin, TurnRow
from outlast.store.sql.statement import Row

MOST_TURNS = 100
_MOST_BYTES = 8 * 1024 * 1024
"""Of events that are read for a page. The rest of its turns comes with the next one."""
_MOST_TASKS = 500
_TASK = re.compile(r'"task_id":"(tsk_[0-9a-z]+)"')


@dataclass(frozen=True, slots=True)
class Asked:
    """Which page: so many turns, the last ones or those before another one."""

    most: int
    before: TurnId | None = None


async def read(services: Services, session_id: SessionId, owner_id: OwnerId, asked: Asked) -> bytes:
    """A page as JSON, at most 1 MiB: as `SessionView` has it."""
    look = partial(_look, session_id=session_id, owner_id=owner_id, asked=asked)
    moment = await services.database.read(look)
    return await asyncio.to_thread(view_page.as_json, services, moment)


async def read_block(services: Services, session_id: SessionId, owner_id: OwnerId, turn_id: TurnId, at: int) -> bytes:
    """One block of a turn, whole, as JSON. Its number counts those kept of the turn that it replaces."""

    def look(connection: sa.Connection) -> Moment:
        row = turns.get(connection, turn_id)
        if row is None or row.session_id != session_id:
            raise NotFound("There is no such turn.", id=turn_id)
        moment = _moment(connection, session_id, owner_id)
        moment.turns = [_read(connection, _chain(connection, row), None)]
        _read_beside(connection, moment)
        return moment

    moment = await services.database.read(look)
    return await asyncio.to_thread(view_page.block_as_json, services, moment, at)


def _look(connection: sa.Connection, session_id: SessionId, owner_id: OwnerId, asked: Asked) -> Moment:
    moment = _moment(connection, session_id, owner_id)
    newer = None
    if asked.before is not None:
        newer = turns.get(connection, asked.before)
        if newer is None or newer.session_id != session_id:
            raise NotFound("There is no such turn.", id=asked.before)
    read: list[ReadTurn] = []
    size = 0
    begin = newer
    for chain in _chains(connection, session_id, newer, asked.most + 1):
        if len(read) == asked.most or size > _MOST_BYTES:
            moment.has_more = True
            break
        read.append(_read(connection, chain, begin))
        begin = chain[0]
        size += sum(len(row["data"]) for each in read[-1].logs for row in each)
    moment.turns = read[::-1]
    _read_beside(connection, moment)
    return moment


def _moment(connection: sa.Connection, session_id: SessionId, owner_id: OwnerId) -> Moment:
    row = reading.there(connection, session_id, owner_id)
    return Moment(row, Place(feed.last(connection, owner_id)).cursor)


def _chains(
    connection: sa.Connection, session_id: SessionId, newer: TurnRow | None, most: int
) -> Iterable[Sequence[TurnRow]]:
    """The turns before another one, the newest first; each with those that it replaced, the first of them first."""
    is_replaced = newer is not None and newer.origin is Origin.REGENERATE
    before = None if newer is None else newer.first_event
    chain: list[TurnRow] = []
    limit = most
    while True:
        found = turns.latest(connection, session_id, limit=limit, before=before)[::-1]
        for row in found:
            if not is_replaced and chain:
                yield chain[::-1]
                chain = []
            # What is only left out, because the one that replaces it stands on a later page, begins no chain.
            if chain or not is_replaced:
                chain.append(row)
            is_replaced = row.origin is Origin.REGENERATE
        if len(found) < limit:
            break
        before = found[-1].first_event
    if chain:
        yield chain[::-1]


def _chain(connection: sa.Connection, row: TurnRow) -> Sequence[TurnRow]:
    """A turn, and before it those that it replaced."""
    chain = [row]
    while chain[0].origin is Origin.REGENERATE:
        found = turns.latest(connection, row.session_id, limit=1, before=chain[0].first_event)
        if not found:
            break
        chain.insert(0, found[0])
    return chain


def _read(connection: sa.Connection, chain: Sequence[TurnRow], newer: TurnRow | None) -> ReadTurn:
    ends = [*(each.first_event for each in chain[1:]), None if newer is None else newer.first_event]
    logs = [_of_turn(connection, row, before=end) for row, end in zip(chain, ends, strict=True)]
    return ReadTurn(chain, logs)


def _of_turn(connection: sa.Connection, row: TurnRow, *, before: int | None) -> Sequence[Row]:
    if row.log_removed_at is not None:
        found = [each for each in folds.rows_of(connection, row.session_id, row.id) if each["turn_id"] == row.id]
    else:
        found = events.stored_of_turn(connection, row.session_id, row.id, first=row.first_event, before=before)
    return [each for each in found if each["type"] in view_page.TYPES]


def _read_beside(connection: sa.Connection, moment: Moment) -> None:
    """What the turns name and the rest of the session: of the same moment."""
    session_id = moment.row.id
    rows = [row for each in moment.turns for log in each.logs for row in log]
    named = {row["task_id"] for row in rows if row["task_id"] is not None}
    unsettled: list[str] = []
    early: list[str] = []
    for row in rows:
        if row["type"] == EventType.CALL_ENDED:
            named.update(_TASK.findall(row["data"]))
            if '"outcome":"interrupted"' in row["data"]:
                unsettled.append(f"settle:{_field(row, 'call_id')}")
        elif row["type"] == EventType.INPUT_DELIVERED and '"mode":' not in row["data"]:
            early.append(_field(row, "input_id"))
    found = inputs.some(connection, session_id, ids=early, keys=unsettled)
    moment.inputs = {each.id: each for each in found}
    moment.inbox = inputs.undelivered(connection, session_id)
    named.update(each.task_id for each in moment.inbox if each.task_id is not None)  # their delivery names these tasks
    waiting = tasks.open_or_named(connection, session_id, named, _MOST_TASKS)
    moment.tasks = task_facts.with_facts(connection, waiting)
    opened = sum(not each.is_over for each in waiting)
    moment.tasks_left_out = tasks.open_count(connection, session_id) - opened if opened >= _MOST_TASKS else 0


def _field(row: Mapping[Any, Any], name: str) -> str:
    try:
        found: Any = from_json(row["data"])
        return str(found[name])
    except (ValueError, KeyError, TypeError):
        return ""  # it is told as one that cannot be read
