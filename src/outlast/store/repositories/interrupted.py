"""The calls of a session whose effect nobody knows, until somebody says what became of them."""

from typing import Any

from outlast.ids import SessionId, TurnId
from outlast.store.locked_session import LockedSession
from outlast.store.unit import Unit
from outlast.values import row_json
from outlast.values.shape import Shape, instant, text

_MOST = 100
"""Of a session, the last ones: the log has all of them."""
_CALL: Shape = {"call_id": text, "tool": text, "turn_id": text, "at": instant}


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
    return decode(session.interrupted_calls)


def decode(stored: str) -> list[dict[str, Any]]:
    """As they stand in a session's row. What cannot be read names no call: there is nothing that could be settled."""
    return [each for each in row_json.read_list(stored, _CALL) if not row_json.is_unreadable(each)]


def _write(session: LockedSession, calls: list[dict[str, Any]]) -> None:
    session.set(interrupted_calls=row_json.write(calls))
