"""What a task's end says to the conversation that asked for it. Tool text in it is data: fenced and escaped."""

from datetime import timedelta
from typing import Any, cast

from pydantic_core import to_json

from outlast.clock import in_words
from outlast.store.repositories.stored_task import Task
from outlast.transitions.kinds.session import SESSION
from outlast.transitions.tasks.parked import why_parked
from outlast.wire.task_state import TaskState

INLINE = 4 * 1024
"""Results up to this size stand in the wake; larger ones are read with `read_output`."""

_HOW = {
    TaskState.SUCCEEDED: "finished",
    TaskState.FAILED: "failed",
    TaskState.CANCELED: "was canceled",
}


def headline(task: Task) -> str:
    """One line for people and the model: what ended, and how."""
    said = f"Background task {task.id} ({task.title}) {_end(task)}"
    return f"{said}; {why_parked(task.parked)}." if task.parked is not None else f"{said}."


def _end(task: Task) -> str:
    if task.error is not None and task.error["kind"] == "interrupted":
        # How long it ran nobody knows, only when it was noticed.
        return "was interrupted when its process ended"
    how = _HOW.get(task.state, task.state.value)
    return how if task.ran_seconds is None else f"{how} after {in_words(timedelta(seconds=task.ran_seconds))}"


def text_of(task: Task) -> str:
    """The body of a wake."""
    lines = [headline(task)]
    if task.error is not None:
        lines.append(f"Error ({task.error['kind']}): {task.error['message']}")
    elif task.state is TaskState.SUCCEEDED:
        lines.append(result_line(task))
    elif task.state is TaskState.CANCELED and task.kind == SESSION.name and task.detail:
        lines.append(task.detail)
    if task.artifacts:
        lines.append(f"Files: {', '.join(str(each.get('name', each.get('message'))) for each in task.artifacts)}")
    return "\n".join(lines)


def result_line(task: Task) -> str:
    text = task.result if isinstance(task.result, str) else to_json(task.result).decode()
    if len(text) <= INLINE:
        return f"Result: {text}"
    return f"Result: {_characters(task, text)} characters; read them with read_output(id={task.id!r}, what='result')."


def _characters(task: Task, text: str) -> int:
    """Of the whole result, also when the task holds only a view of it."""
    result: Any = task.result
    if not isinstance(result, dict):
        return len(text)
    view = cast(dict[str, Any], result)
    if view.get("type") == "external" and isinstance(view.get("result"), dict):
        view = cast(dict[str, Any], view["result"])
    return view.get("characters_total", len(text)) if view.get("truncated") is True else len(text)
