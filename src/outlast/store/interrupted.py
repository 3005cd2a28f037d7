"""The calls of a session whose effect nobody knows, until somebody says what became of them."""

from typing import Any

from outlast.ids import SessionId, TurnId
from outlast.store.unit import LockedSession, Unit
from outlast.tools import row_json

_MOST = 100
"""Of a session, the last ones: the log has all of them."""


def add(unit: Unit, session_id: SessionId, *, call_id: str, tool: str, turn_id: TurnId) -> None:
    session = unit.lock(session_id)
    new = {"call_id": call_id, "tool": tool, "turn_id": turn_id, "at": unit.now.isoformat()}
    _write(session, [*_read(session), new][-_MOST:])


def remove(session: LockedSession, call_id: str) -> None:
    known = _read(session)
    left = [each for each in known if each["call_id"] != call_id]
    if len(left) < len(known):
        _write(session, left)


def _read(session: LockedSession) -> list[dict[str, Any]]:
    return row_json.read_list(session.interrupted_calls)


def _write(session: LockedSession, calls: list[dict[str, Any]]) -> None:
    session.set(interrupted_calls=row_json.write(calls))
