"""Progress in the feed: how much of it a reader is told who did not ask for the session."""

from datetime import UTC, datetime
from typing import Any

from outlast.events.event import Event
from outlast.events.types import EventType
from outlast.handles.following.progress import Progress
from outlast.ids import SessionId, TaskId


def told(number: int, type_: EventType = EventType.TASK_CHANGED, task: str = "tsk_1", **snapshot: Any) -> Event:
    data = {"task": {"id": task, "title": "a task", "state": "running", **snapshot}}
    return Event(SessionId("ses_1"), number, type_.value, datetime.now(UTC), data, task_id=TaskId(task))


def test_of_progress_the_last_one_of_a_second_is_told() -> None:
    """B4, E6: the first at once, then what came last; each task for itself."""
    progress = Progress()
    assert progress.admits(told(1, progress={"current": 1}), now=10.0)
    assert not progress.admits(told(2, progress={"current": 2}), now=10.2)
    assert not progress.admits(last := told(3, progress={"current": 3}, detail="almost"), now=10.9)
    assert progress.admits(told(4, task="tsk_2"), now=10.9)
    assert progress.next_at == 11.0
    assert progress.due(10.99) == []
    assert progress.due(11.0) == [last]
    assert progress.next_at is None
    assert not progress.admits(told(5, progress={"current": 5}), now=11.5)
    assert progress.admits(told(6, progress={"current": 6}), now=12.1)
    assert progress.due(20.0) == []


def test_any_other_change_is_told_at_once_and_replaces_what_is_held() -> None:
    """B4, E6: a change of state, a question and the end are never held back, nor told before older progress."""
    progress = Progress()
    changes: list[tuple[EventType, dict[str, Any]]] = [
        (EventType.TASK_CHANGED, {"state": "waiting"}),
        (EventType.TASK_CHANGED, {"state": "waiting", "request": {"id": "req_1"}}),
        (EventType.TASK_ENDED, {"state": "succeeded"}),
    ]
    for type_, change in changes:
        assert progress.admits(told(1, EventType.TASK_CREATED), now=0.0)
        assert progress.admits(told(2), now=0.0)
        assert not progress.admits(told(3, progress={"current": 1}), now=0.1)
        assert progress.admits(told(4, type_, **change), now=0.2)
        assert progress.due(100.0) == []
    assert progress.admits(Event(SessionId("ses_1"), 5, "turn.started", datetime.now(UTC), {}), now=0.2)
