"""The mark by which a session is gone for everybody; its rows and files are removed after that."""

from datetime import datetime

from outlast.events.event import Draft
from outlast.events.signals import input_topic, task_topic
from outlast.events.types import EventType
from outlast.ids import SessionId
from outlast.store import removed_sessions
from outlast.store.repositories import family, inputs, old_sessions, schedules, sessions, tasks
from outlast.store.repositories.old_sessions import OldSession
from outlast.store.unit import Unit
from outlast.transitions import sub_sessions, turn


def mark(unit: Unit, session_id: SessionId, *, owner_id: str) -> list[SessionId]:
    """From this commit on the session is not there, nor are those below it. Gives the ids of all of them.

    Their turns have ended; what runs of their tasks finds them gone.
    """
    below = family.below(unit.connection, session_id) if sessions.get(unit.connection, session_id, owner_id) else []
    found = [each for each in below if unit.try_lock(each)]
    unit.lock(session_id, owner_id=owner_id)
    for each in (session_id, *found):
        unit.lock(each).set(is_held=True)  # no end of one starts anything in another
    for each in (session_id, *reversed(found)):
        _mark(unit, each)
    return [session_id, *found]


def mark_old(unit: Unit, old: OldSession, before: datetime, *, setting: str) -> list[SessionId]:
    """Mark one that was kept long enough, if it may go now. Gives nothing if not, or if another transaction has it.

    Its owner can read why it is gone.
    """
    unit.lock_free([old.id])
    below = family.below(unit.connection, old.id)
    unit.lock_free(below)
    found = [old.id, *below]
    if not all(unit.has_locked(each) for each in found) or not unit.lock(old.id).is_archived:
        return []
    if not old_sessions.may_go(unit.connection, found, before):
        return []
    for each in found:
        removed_sessions.note(unit.connection, each, old.owner_id, setting=setting, at_us=unit.now_us)
    return mark(unit, old.id, owner_id=old.owner_id)


def _mark(unit: Unit, session_id: SessionId) -> None:
    session = unit.lock(session_id)
    turn.abort(unit, session)
    sub_sessions.deleted(unit, session)
    for task_id in tasks.open_ids(unit.connection, session_id):
        unit.signal(task_topic(task_id))
    for each in inputs.waiting_for(unit, session_id):
        unit.signal(input_topic(each.id))
    schedules.fall_silent(unit, session_id)
    unit.append(session_id, [Draft(EventType.SESSION_DELETED, {})])
    session.set(deleted_at=unit.now_us, external_id=None, resource=None)
