"""A long session without the time its turns would take: real turns, and copies of their rows in the SQLite file.

Each copy has its own turns, inputs and calls, later positions, and is in all else what the turn was.
"""

import json
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from outlast import ids

_POSITION = re.compile(r'"message":(\d+)')
_CALL = re.compile(r'"(c\d+-\d+)"')
_COPIED = ("turns", "inputs", "events", "messages")
Row = dict[str, Any]


def grow(path: Path, session_id: str, events: int) -> int:
    """Copy all turns of a session until its log has so many events; its last position. No runtime has it open."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.row_factory = sqlite3.Row
        rows = {table: _rows(connection, table, session_id) for table in _COPIED}
        [session] = _rows(connection, "sessions", session_id, column="id")
        last_event = session["last_event"]
        # The first event is that of the session; each copy begins after it.
        turns = last_event - 1
        copies = max(0, -(-(events - last_event) // turns))
        for number in range(1, copies + 1):
            renamed = {each["id"]: _new(each["id"]) for table in ("turns", "inputs") for each in rows[table]}
            by = {"event": turns * number, "message": session["last_message"] * number, "copy": number}
            for table in _COPIED:
                _insert(
                    connection, table, [_moved(table, each, renamed, by) for each in rows[table] if _is_of_turn(each)]
                )
        last = {name: session[name] * (copies + 1) for name in ("last_message", "last_input")}
        last |= {"last_event": last_event + copies * turns}
        last |= {"answered_event": last["last_event"]}
        assignments = ", ".join(f"{name} = :{name}" for name in last)
        connection.execute(f"UPDATE sessions SET {assignments} WHERE id = :id", {**last, "id": session_id})
        return last["last_event"]


def _rows(connection: sqlite3.Connection, table: str, session_id: str, *, column: str = "session_id") -> list[Row]:
    found = connection.execute(f"SELECT * FROM {table} WHERE {column} = ?", (session_id,))
    return [dict(each) for each in found]


def _insert(connection: sqlite3.Connection, table: str, rows: list[Row]) -> None:
    names = list(rows[0])
    values = ", ".join(f":{name}" for name in names)
    connection.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})", rows)


def _is_of_turn(row: Row) -> bool:
    return row.get("type") != "session.created"


def _new(id: str) -> str:
    return ids.turn_id() if id.startswith("trn_") else ids.input_id()


def _moved(table: str, row: Row, renamed: Mapping[str, str], by: Mapping[str, int]) -> Row:
    moved = {name: renamed.get(value, value) if isinstance(value, str) else value for name, value in row.items()}
    for name in ("number", "first_event", "event"):
        if name in row and row[name] is not None:
            moved[name] = row[name] + by["event"]
    for name in ("position", "message"):
        if name in row and row[name] is not None:
            moved[name] = row[name] + by["message"]
    if table == "inputs":
        moved["sequence"] = row["sequence"] + by["copy"] * len(renamed)
    for name in ("data", "body"):
        if name in row:
            moved[name] = _rewritten(row[name], renamed, by)
    return moved


def _rewritten(text: str, renamed: Mapping[str, str], by: Mapping[str, int]) -> str:
    text = _POSITION.sub(lambda found: f'"message":{int(found[1]) + by["message"]}', text)
    text = _CALL.sub(rf'"copy{by["copy"]}-\1"', text)
    for old, new in renamed.items():
        if old in text:
            text = text.replace(old, new)
    json.loads(text)
    return text
