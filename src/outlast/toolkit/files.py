"""Tools for the files of the session: names in its own store, not paths on this machine."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

from pydantic import Field
from pydantic_ai import Tool
from pydantic_ai.exceptions import ToolFailed

from outlast.calls.within.session_files import NamedFile, files
from outlast.errors import BodyTooLarge, Conflict, InvalidInput, NotFound
from outlast.permissions.pattern import Pattern
from outlast.tool_hints import hints

T = TypeVar("T")
_MOST_LINES = 2_000
_MOST_HITS = 200
_LONGEST_LINE = 2_000
_MOST_TRIES = 100
"""Of one edit, while others change the same file."""
Name = Annotated[str, Field(description="The name of a file of this conversation; names, not paths.")]
_TYPES = {
    **{"md": "text/markdown", "csv": "text/csv", "html": "text/html", "json": "application/json"},
    **{"xml": "application/xml", "svg": "image/svg+xml"},
}


def file_tools() -> list[Tool[Any]]:
    """`list_files`, `stat_file`, `read_lines`, `write_file`, `edit_file`, `grep_files` and `delete_file`.

    People find the same files with the session, in the library, over HTTP and by the command.
    """
    return [
        Tool(list_files, metadata=hints(read_only=True, narrate="Looking at the files")),
        Tool(stat_file, metadata=hints(read_only=True, narrate="Looking at {name}")),
        Tool(read_lines, metadata=hints(read_only=True, narrate="Reading {name}")),
        Tool(write_file, metadata=hints(idempotent=True, narrate="Writing {name}")),
        Tool(edit_file, metadata=hints(narrate="Editing {name}")),
        Tool(grep_files, metadata=hints(read_only=True, narrate="Searching files for {pattern}")),
        Tool(delete_file, metadata=hints(narrate="Deleting {name}")),
    ]


async def list_files() -> list[dict[str, Any]]:
    """List the files of this conversation."""
    return [_shown(each) for each in await _told(files.list)]


async def stat_file(name: Name) -> dict[str, Any]:
    """What is known of a file: id, media type, bytes."""
    return _shown(await _there(name))


async def read_lines(
    name: Name,
    first: Annotated[int, Field(ge=1, description="The number of the first line.")] = 1,
    count: Annotated[int, Field(ge=1, description=f"How many lines, at most {_MOST_LINES}.")] = 500,
) -> dict[str, Any]:
    """Read lines of a text file."""
    lines = (await _text(name))[1].splitlines()
    last = first - 1 + min(count, _MOST_LINES)
    told: dict[str, Any] = {"lines_total": len(lines), "text": "\n".join(lines[first - 1 : last])}
    if last < len(lines):
        told["next"] = last + 1
    return told


async def write_file(name: Name, text: str) -> dict[str, Any]:
    """Write a text file whole, instead of what it was before."""
    return {"id": await _told(lambda: files.write(name, text, _type_of(name))), "name": name}


async def edit_file(name: Name, old: str, new: str, all: bool = False) -> dict[str, Any]:
    """Replace a text in a file. It must be there, and just once, unless all are meant.

    Args:
        old: The text as it stands there, with enough around it to be found once.
        new: What comes instead.
        all: Replace it wherever it is.
    """
    for _ in range(_MOST_TRIES):
        file, text = await _text(name)
        count = text.count(old) if old else 0
        if count == 0 or (count > 1 and not all):
            is_where = f"is there {count} times: give more of what is around it, or all=true"
            raise ToolFailed(f"Nothing was changed: this text {is_where if count else 'is not there'}.")
        try:
            id_ = await files.write(file.name, text.replace(old, new), _type_of(name), instead_of=file.id)
        except Conflict:
            continue  # another edit of it came first, perhaps of the same step: this one is made in what that left
        except (BodyTooLarge, InvalidInput, NotFound) as exc:
            raise ToolFailed(exc.message) from exc
        return {"id": id_, "replaced": count}
    raise ToolFailed(f"Nothing was changed: {name} is changed by others all the time. Try again.")


async def grep_files(pattern: str, name: Name | None = None) -> dict[str, Any]:
    """Find lines by a regular expression, in one text file or in all.

    Args:
        pattern: As Rust's regex has it: without look-around and references back.
    """
    try:
        wanted = Pattern(pattern)
    except InvalidInput as exc:
        raise ToolFailed(f"{exc.message} Give one as Rust's regex has them.") from exc
    chosen = await _told(files.list) if name is None else [await _there(name)]
    hits: list[dict[str, Any]] = []
    for each in chosen:
        data = await _told(lambda: files.read(each.name))  # noqa: B023
        hits += await asyncio.to_thread(_hits, each.name, data, wanted, _MOST_HITS + 1 - len(hits))
        if len(hits) > _MOST_HITS:
            return {"lines": hits[:_MOST_HITS], "left_out": f"more than {_MOST_HITS} lines: search more narrowly"}
    return {"lines": hits}


async def delete_file(name: Name) -> str:
    """Delete a file. Those of messages and those that calls made stay."""
    await _told(lambda: files.delete(name))
    return f"{name} is deleted."


def _hits(name: str, data: bytes, wanted: Pattern, most: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        return []
    for number, line in enumerate(lines, start=1):
        if wanted.is_in(line[: min(_LONGEST_LINE, wanted.longest)]):
            found.append({"name": name, "line": number, "text": line[:_LONGEST_LINE]})
            if len(found) >= most:
                break
    return found


async def _there(name: str) -> NamedFile:
    found = await _told(lambda: files.find(name))
    if found is None:
        raise ToolFailed(f"There is no file {name[:80]!r}: list_files says which there are.")
    return found


async def _text(name: str) -> tuple[NamedFile, str]:
    """What has the name, and just its text."""
    file = await _there(name)
    try:
        return file, (await _told(lambda: files.read(file.id))).decode()
    except UnicodeDecodeError as exc:
        raise ToolFailed(f"{name} ({file.media_type}) is no text.") from exc


def _type_of(name: str) -> str:
    return _TYPES.get(name.rpartition(".")[2].lower(), "text/plain")


async def _told(work: Callable[[], Awaitable[T]]) -> T:
    """What is wrong with a name, or has no room, the model is told in words."""
    try:
        return await work()
    except (BodyTooLarge, Conflict, InvalidInput, NotFound) as exc:
        raise ToolFailed(exc.message) from exc


def _shown(file: NamedFile) -> dict[str, Any]:
    return {"name": file.name, "id": file.id, "media_type": file.media_type, "bytes": file.bytes}
