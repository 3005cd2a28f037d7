"""A question that a tool asks: opened, and told to the model that gave the work, as long as that waits for it."""

from typing import Any

from outlast.ids import TaskId
from outlast.store.repositories.inputs import InputKind
from outlast.store.repositories.stored_task import Task
from outlast.store.unit import Unit
from outlast.transitions import sub_sessions
from outlast.transitions.tasks import requests, task_moves
from outlast.transitions.tasks.requests import Given, Question
from outlast.transitions.turns import inbox


def ask(unit: Unit, task_id: TaskId, question: Question, *, attempt: int, is_told: bool = False) -> Given | None:
    """As `requests.ask`. The model of a parent session may know the answer."""
    before = _request_id(task_moves.locked(unit, task_id))
    answer = requests.ask(unit, task_id, question, attempt=attempt, is_told=is_told)
    asking = task_moves.again(unit, task_id)
    if answer is None and _request_id(asking) != before:
        _tell_parent(unit, asking)
    return answer


def _request_id(task: Task | None) -> Any:
    return None if task is None or task.request is None else task.request["id"]


def _tell_parent(unit: Unit, asking: Task) -> None:
    session = unit.lock(asking.session_id)
    sub_sessions.lock_parent(unit, session)
    given = sub_sessions.asked_by(unit, session, asking.turn_id)
    if given is not None:
        words = f"The sub-session of task {given.id} ({given.title}) has a question. {requests.notice(asking)}"
        inbox.notify(unit, given.session_id, InputKind.REQUEST, words, task_id=asking.id)
