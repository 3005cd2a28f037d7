"""The files of a session by name. Their bytes are in the file store, under keys that begin with their content.

What messages and calls hold is kept as long as the session, one copy of each content. A file that can be deleted has a
copy of its own: so its bytes go with its name, whatever else of the same content is kept at the same moment.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from outlast.clock import from_microseconds
from outlast.errors import BodyTooLarge
from outlast.ids import SessionId, content_key, file_id
from outlast.store.sql.statement import Row
from outlast.store.tables import events, files, inputs, messages, results, tasks, turn_folds
from outlast.store.unit import Unit

Origin = Literal["upload", "message", "tool", "artifact"]
_TRIES = 1_000


@dataclass(frozen=True, slots=True)
class NewFile:
    name: str
    key: str
    media_type: str
    bytes: int
    origin: Origin
    made_by: str
    """An owner, or the id of a call."""


@dataclass(frozen=True, slots=True)
class FileRow(NewFile):
    session_id: SessionId
    created_at: datetime

    @property
    def id(self) -> str:
        """Two names of a session with the same content have the same."""
        return file_id(self.key)


def _from_row(row: Row) -> FileRow:
    return FileRow(
        name=row["name"],
        key=row["key"],
        media_type=row["media_type"],
        bytes=row["bytes"],
        origin=row["origin"],
        made_by=row["made_by"],
        session_id=SessionId(row["session_id"]),
        created_at=from_microseconds(row["created_at"]),
    )


def check_room(unit: Unit, session_id: SessionId, new: Sequence[NewFile], *, instead_of: str | None = None) -> None:
    """Raises `BodyTooLarge` if they do not fit. For exact limits the session is locked."""
    limits = unit.limits
    for each in new:
        if each.bytes > limits.max_file_bytes:
            raise BodyTooLarge(
                f"{each.name}: {each.bytes} bytes are too many; a file has at most {limits.max_file_bytes}."
            )
    kept = (files.c.session_id == session_id, files.c.name != (instead_of or ""))
    total = unit.connection.execute(
        sa.select(sa.func.coalesce(sa.func.sum(files.c.bytes), 0)).where(*kept)
    ).scalar_one()
    wanted = int(total) + sum(each.bytes for each in new)
    if wanted > limits.max_session_bytes:
        raise BodyTooLarge(
            f"The files of this session would have {wanted} bytes; at most {limits.max_session_bytes} are kept. "
            "Delete some first."
        )


def add(unit: Unit, session_id: SessionId, new: NewFile) -> FileRow:
    """Under its name, or if another file has that, under one with a number. The same again is the same file."""
    insert = postgresql.insert if unit.dialect == "postgresql" else sqlite.insert
    for number in range(1, _TRIES):
        name = new.name if number == 1 else _numbered(new.name, number)
        done = unit.connection.execute(
            insert(files).values(_values(unit, session_id, new, name)).on_conflict_do_nothing()
        )
        found = get(unit.connection, session_id, name)
        if found is not None and (done.rowcount == 1 or content_key(found.key) == content_key(new.key)):
            return found
    raise BodyTooLarge(
        f"There are {_TRIES} files called {new.name!r} in this session: delete some, or choose another name."
    )


def put(unit: Unit, session_id: SessionId, new: NewFile) -> FileRow:
    """Under its name, instead of what had it before. The session is locked. The same again is the same file."""
    known = get(unit.connection, session_id, new.name)
    if known is not None and content_key(known.key) == content_key(new.key):
        new = replace(new, key=known.key)
    changed = _values(unit, session_id, new, new.name)
    where = (files.c.session_id == session_id, files.c.name == new.name)
    if unit.connection.execute(sa.update(files).where(*where).values(changed)).rowcount == 0:
        unit.connection.execute(sa.insert(files).values(changed))
    return _from_row(changed | {"session_id": session_id})


def get(connection: sa.Connection, session_id: SessionId, name: str) -> FileRow | None:
    found = connection.execute(sa.select(files).where(files.c.session_id == session_id, files.c.name == name))
    row = found.mappings().first()
    return None if row is None else _from_row(row)


def of_content(connection: sa.Connection, session_id: SessionId, key: str) -> Sequence[FileRow]:
    """All names of one content."""
    key = content_key(key)
    same = sa.or_(files.c.key == key, files.c.key.startswith(f"{key}.", autoescape=True))
    query = sa.select(files).where(files.c.session_id == session_id, same).order_by(files.c.name)
    return [_from_row(row) for row in connection.execute(query).mappings()]


def page(connection: sa.Connection, session_id: SessionId, *, after: str = "", limit: int = 10_000) -> list[FileRow]:
    """By name."""
    query = sa.select(files).where(files.c.session_id == session_id, files.c.name > after)
    return [_from_row(row) for row in connection.execute(query.order_by(files.c.name).limit(limit)).mappings()]


def remove(unit: Unit, session_id: SessionId, name: str) -> None:
    unit.connection.execute(sa.delete(files).where(files.c.session_id == session_id, files.c.name == name))


def is_used(connection: sa.Connection, session_id: SessionId, key: str) -> bool:
    """Whether anything of the session still leads to the bytes: another name, a message, a result, an event.

    To a copy only names lead.
    """
    named = sa.select(sa.literal(1)).where(files.c.session_id == session_id, files.c.key == key).limit(1)
    if connection.execute(named).first() is not None:
        return True
    if key != content_key(key):
        return False
    places = (
        (inputs, inputs.c.body, file_id(key)),
        (inputs, inputs.c.body, key),
        (messages, messages.c.body, key),
        (events, events.c.data, key),
        (events, events.c.data, f'"id":"{file_id(key)}"'),
        (turn_folds, turn_folds.c.data, key),
        (turn_folds, turn_folds.c.data, f'"id":"{file_id(key)}"'),
        (tasks, tasks.c.result, key),
        (tasks, tasks.c.artifacts, file_id(key)),
        (results, results.c.file, key),
    )
    for table, column, text in places:
        chosen = (table.c.session_id == session_id, sa.cast(column, sa.Text).contains(text, autoescape=True))
        if connection.execute(sa.select(sa.literal(1)).select_from(table).where(*chosen).limit(1)).first() is not None:
            return True
    return False


def _values(unit: Unit, session_id: SessionId, new: NewFile, name: str) -> dict[str, object]:
    return {
        "session_id": session_id,
        "name": name,
        "key": new.key,
        "media_type": new.media_type,
        "bytes": new.bytes,
        "origin": new.origin,
        "made_by": new.made_by,
        "created_at": unit.now_us,
    }


def _numbered(name: str, number: int) -> str:
    stem, dot, ending = name.rpartition(".")
    return f"{stem} ({number}).{ending}" if stem and dot else f"{name} ({number})"
