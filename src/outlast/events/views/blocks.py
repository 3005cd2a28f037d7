"""The blocks of a turn, as `wire/view.py` describes them: each made of the event that tells of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from outlast import ids
from outlast.events.event import Event

Block = dict[str, Any]
Show = Callable[[Any], Any]
"""A stored value as its reader gets it."""

SAID = frozenset({"message", "wake", "note"})
"""Blocks that the model was given; but for notes that only people see, which have no `input_id`."""


def of_input(event: Event) -> Block:
    """An input, where the model was given it."""
    data = event.data
    tasks = task_ids(event)
    match data["kind"]:
        case "message":
            return {
                **{"type": "message", "input_id": data["input_id"], "key": data.get("key"), "text": data["text"]},
                **{"cut": None, "files": data.get("files") or [], "mode": data.get("mode")},
                **{"by": data.get("by"), "at": event.at},
            }
        case "wake":
            return {
                **{"type": "wake", "input_id": data["input_id"], "task_ids": tasks, "text": data["text"]},
                **{"cut": None, "at": event.at},
            }
        case _:
            kind: str = data["kind"]
            return note(
                "settled" if kind == "settlement" else kind,
                data["text"],
                event,
                input_id=data["input_id"],
                task_ids=tasks,
            )


def task_ids(event: Event) -> list[str]:
    """The tasks that an input tells of."""
    told: Sequence[str] = event.data.get("task_ids") or ()
    return list(told) if told or event.task_id is None else [event.task_id]


def note(
    kind: str,
    text: str,
    event: Event,
    *,
    input_id: str | None = None,
    task_ids: Sequence[str] = (),
    details: Mapping[str, Any] | None = None,
) -> Block:
    return {
        **{"type": "note", "kind": kind, "text": text, "cut": None, "input_id": input_id, "task_ids": [*task_ids]},
        **{"details": None if details is None else dict(details), "at": event.at},
    }


def part(data: Mapping[str, Any]) -> Block:
    """A part of an answer, as it begins."""
    match data["kind"]:
        case "text" | "reasoning" as kind:
            return {"type": kind, "part": data["part"], "text": "", "cut": None, "is_open": True}
        case "call":
            return call(data["call_id"], data["tool"], data["part"])
        case kind:
            return {"type": "file", "part": data["part"], "kind": kind, "file": None, "is_open": True}


def call(call_id: str, tool: str, name: str | None = None) -> Block:
    """A call that the model asks for. `args` is the text so far, until it begins."""
    return {
        **{"type": "call", "call_id": call_id, "part": name, "tool": tool, "args": None, "narration": None},
        **{
            "state": "asked",
            "outcome": None,
            "is_unknown": False,
            "result": None,
            "files": [],
            "artifacts": [],
            "task_id": None,
        },
        **{"progress": None, "reason": None, "settled": None, "started_at": None, "ended_at": None},
    }


def files_in(given: Any) -> Iterator[Block]:
    """The files in what a tool gave, and among what it tells the model beside that."""
    for each in cast(list[Any], given) if isinstance(given, list) else [given]:
        if isinstance(each, dict) and cast(Block, each).get("kind") == "binary":
            yield _file(cast(Block, each))


def _file(given: Block) -> Block:
    data = given.get("data")
    shown: Block = previewed(data) if isinstance(data, dict) else {}
    if "$preview" in shown:
        size, of_file = shown["bytes"], shown["file_id"]
    else:
        size, of_file = len(data) * 3 // 4 if isinstance(data, str) else 0, None
    media_type = given.get("media_type") or "application/octet-stream"
    return {"id": of_file, "name": given.get("identifier"), "media_type": media_type, "bytes": size}


def file_id(key: Any) -> str | None:
    return ids.file_id(key) if isinstance(key, str) else None


def previewed(value: Any) -> Any:
    """A stored value with previews, and where they are read, in place of what lies in the file store."""
    if isinstance(value, list):
        return [previewed(each) for each in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    fields = cast(Block, value)
    kept = fields.get("$file")
    if isinstance(kept, dict):
        stored = cast(Block, kept)
        return preview(stored.get("preview") or "", stored.get("bytes", 0), file_id(stored.get("key")))
    return {name: previewed(each) for name, each in fields.items()}


def preview(beginning: str, size: int, of_file: str | None, href: str | None = None) -> Block:
    """What stands for a value that is too large."""
    where = href or ("" if of_file is None else f"/v1/files/{of_file}")
    return {"$preview": beginning, "bytes": size, "file_id": of_file, "href": where}


def as_given(value: Any) -> Any:
    return value
