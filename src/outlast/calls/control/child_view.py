"""What the model of a parent sees of a sub-session: its last messages, and what it asks."""

from collections.abc import Iterable
from typing import Any, cast

import sqlalchemy as sa
from pydantic_core import to_json

from outlast.ids import SessionId
from outlast.store.repositories import messages, tasks
from outlast.store.repositories.messages import MessageRow
from outlast.store.repositories.stored_task import Task
from outlast.transitions import sub_sessions
from outlast.transitions.tasks import open_request
from outlast.values import row_json

LAST = 5
CHARACTERS = 400
_ASKED = ("kind", "prompt", "schema", "deadline_at")
_MOST = 20


def asks_of(task: Task) -> dict[str, Any] | None:
    """What somebody must say, if the task waits for that."""
    if task.request is None or not open_request.is_open(task):
        return None
    return {name: task.request[name] for name in _ASKED if name in task.request}


def view(connection: sa.Connection, task: Task) -> dict[str, Any]:
    """Of the sub-session that a task is. The tasks in `asks` are those of all sessions below."""
    child_id = SessionId(task.links[sub_sessions.CHILD])
    last = messages.recent(connection, child_id, limit=LAST)
    asking = tasks.asking(connection, task.owner_id, within=child_id, limit=_MOST)
    return {
        "session_id": child_id,
        "messages": [said for said in map(_said, last) if said["text"]],
        "asks": [{"task_id": each.id, "title": each.title, **asked} for each in asking if (asked := asks_of(each))],
    }


def _said(row: MessageRow) -> dict[str, str]:
    try:
        parts: Any = row_json.read_object(row.body).get("parts") or []
    except ValueError:
        parts = []
    text = "\n".join(_words(parts))
    cut = text if len(text) <= CHARACTERS else f"{text[: CHARACTERS - 1]}…"
    return {"by": "agent" if row.kind == "response" else "input", "text": cut}


def _words(parts: Iterable[Any]) -> Iterable[str]:
    for part in parts:
        match part.get("part_kind"):
            case "user-prompt" | "text":
                yield _text(part.get("content"))
            case "tool-call":
                yield f"[calls {part.get('tool_name')} {_text(part.get('args') or '')}]"
            case "tool-return" | "retry-prompt":
                yield f"[{part.get('tool_name')} gave {_text(part.get('content'))}]"
            case _:
                pass


def _text(content: Any) -> str:
    """Of what is stored elsewhere, its beginning."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return " ".join(_text(each) for each in cast(list[Any], content))
    if isinstance(content, dict):
        kept: Any = cast(dict[str, Any], content).get("$file")
        if isinstance(kept, dict):
            return str(cast(dict[str, Any], kept).get("preview", "[a file]"))
    return to_json(content).decode()
