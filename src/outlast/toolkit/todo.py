"""A list of what is to be done, kept with the session, so that it outlives long conversations and restarts."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic_ai import Tool

from outlast.calls.within.session_files import files
from outlast.errors import NotFound
from outlast.tool_hints import hints

FILE = "todos.json"
_MOST = 100


class Todo(BaseModel):
    text: str = Field(max_length=500)
    state: Literal["open", "doing", "done"] = "open"


_LIST = TypeAdapter(list[Todo])


def todo_tools() -> list[Tool[Any]]:
    """`write_todos` and `read_todos`. People find the list as the session's file `todos.json`."""
    return [
        Tool(write_todos, metadata=hints(idempotent=True, narrate=_words)),
        Tool(read_todos, metadata=hints(read_only=True, narrate="Looking at the list of what is to be done")),
    ]


async def write_todos(todos: list[Todo]) -> dict[str, int]:
    """Keep a list of the steps of long work: the whole list, each time something of it changes.

    Args:
        todos: All of them, in order, at most 100.
    """
    kept = todos[:_MOST]
    await files.write(FILE, _LIST.dump_json(kept, indent=1), "application/json")
    counts = {state: sum(each.state == state for each in kept) for state in ("open", "doing", "done")}
    return counts | ({"left_out": len(todos) - _MOST} if len(todos) > _MOST else {})


async def read_todos() -> Sequence[Todo]:
    """Read the list as it was written last."""
    try:
        return _LIST.validate_json(await files.read(FILE))
    except (NotFound, ValidationError):  # none yet, or somebody put another file in its place
        return []


def _words(args: Any) -> str:
    todos: list[Any] = args["todos"]
    doing = next((each["text"] for each in todos if each.get("state") == "doing"), None)
    done = sum(each.get("state") == "done" for each in todos)
    return f"{done} of {len(todos)} done" + (f"; now: {doing}" if doing else "")
