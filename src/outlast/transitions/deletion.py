"""The mark by which a session is gone for everybody; its rows and files are removed after that."""

from outlast.events.event import Draft
from outlast.events.signals import input_topic, task_topic
from outlast.events.types import EventType
from outlast.ids import SessionId
from outlast.store.repositories import inputs, tasks
from outlast.store.unit import Unit
from outlast.transitions import turn


def mark(unit: Unit, session_id: SessionId, *, owner_id: str) -> None:
    """From this commit on the session is not there. Its turn has ended; what runs of its tasks finds them gone."""
    session = unit.lock(session_id, owner_id=owner_id)
    turn.abort(unit, session)
    for task_id in tasks.open_ids(unit.connection, session_id):
        unit.signal(task_topic(task_id))
    for each in inputs.waiting_for(unit, session_id):
        unit.signal(input_topic(each.id))
    unit.append(session_id, [Draft(EventType.SESSION_DELETED, {})])
    session.set(deleted_at=unit.now_us, external_id=None, resource=None)
