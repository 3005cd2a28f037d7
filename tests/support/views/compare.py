"""Two views of one session, made comparable: the server's own, and one that a reader folded from events."""

from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from outlast.wire.view import SessionView, TurnView, Waiting

View = dict[str, Any]


def comparable(given: SessionView | View, *, like: SessionView | None = None) -> View:
    """Turns, inbox and tasks as JSON. `like`: tasks that this view does not show any more are left out.

    The place of a task that waits, and the size of its output, change without an event of it.
    """
    view = from_json(given.model_dump_json() if isinstance(given, SessionView) else to_json(given))
    shown = None if like is None else {each["id"] for each in like.tasks}
    tasks = {each["id"]: each for each in view["tasks"] if shown is None or each["id"] in shown}
    for each in tasks.values():
        for name in ("place", "output_size", "last_line"):
            each.pop(name, None)
    return {
        "as_of": view["as_of"],
        "turns": _whole(_TURNS, view["turns"]),
        "inbox": _whole(_INBOX, view["inbox"]),
        "tasks": tasks,
    }


def _whole(kind: TypeAdapter[Any], given: Any) -> Any:
    """With the fields that were left out, and without those that nobody declared."""
    return kind.dump_python(kind.validate_python(given), mode="json")


_TURNS = TypeAdapter(list[TurnView])
_INBOX = TypeAdapter(list[Waiting])
