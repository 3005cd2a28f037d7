"""A session's history: pydantic-ai messages in, rows out, and back."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import sqlalchemy as sa
import structlog
from pydantic import TypeAdapter
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)

from outlast.agents.messages import unreadable
from outlast.agents.messages.plain_message import make_plain
from outlast.calls.outcomes import interrupted
from outlast.ids import SessionId, TurnId
from outlast.store.database import Database
from outlast.store.files.file_store import FileStore
from outlast.store.files.spill import Room, is_packed, pack, unpack, unpack_within
from outlast.store.repositories import messages
from outlast.values import clean, foreign, row_json
from outlast.values.redact import last_line
from outlast.values.secrets import Secrets

log = structlog.get_logger("outlast.sessions")


@cache
def message_type() -> TypeAdapter[ModelMessage]:
    """Made when it is first asked for: it takes a tenth of a second, which a process that starts can use better."""
    return TypeAdapter(ModelMessage)


@cache
def _part_type() -> TypeAdapter[ToolReturnPart]:
    return TypeAdapter(ToolReturnPart)


_PAGE = 200
_MASKED = "outlast_masked_calls"
_SHOWN = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Entry:
    """A message with its place in history."""

    message: ModelMessage
    position: int
    turn_id: TurnId | None
    event: int


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as JSON. `event` is the last number of the log that belongs to it."""

    position: int
    turn_id: TurnId | None
    event: int
    message: dict[str, Any]
    superseded_by: TurnId | None = None
    """The turn that answers anew: the model no longer sees this message."""


async def stored(
    files: FileStore, row: messages.MessageRow, show: Callable[[dict[str, Any]], dict[str, Any]]
) -> StoredMessage:
    """Up to 1 MiB of its large values in place, the rest named; `show` gives a message as its reader may see it."""
    message = show(await shown(files, row, Room(_SHOWN)))
    return StoredMessage(row.position, row.turn_id, row.event, message, row.superseded_by)


async def shown(files: FileStore, row: messages.MessageRow, room: Room) -> dict[str, Any]:
    """A message for people. In place of one that cannot be read, one that says so."""
    try:
        found = row_json.read_object(await unpack_within(files, row.body, room))
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        log.error("a stored message cannot be read", position=row.position, error=last_line(exc))
        found = row_json.unreadable(len(row.body))
    if not row_json.is_unreadable(found) and isinstance(found.get("parts"), list):
        return found
    words = row_json.unreadable(len(row.body))["message"]
    part = {"part_kind": "user-prompt" if row.kind == "request" else "text", "content": f"[{words}]"}
    return {"kind": row.kind, "parts": [part]}


async def encode(files: FileStore, session_id: SessionId, message: ModelMessage) -> str:
    """What could not be read back is cleaned first, in the message itself: it would end every turn after it."""
    return await pack(files, session_id, _encoded(message))


def masked(message: ModelMessage, secrets: Secrets) -> ModelMessage:
    """Without registered values: the same message where it has none."""
    if secrets.is_empty:
        return message
    plain = _plain(message)
    shown = foreign.message(secrets, plain)
    if shown is plain:
        return message
    result = message_type().validate_python(shown)
    if isinstance(message, ModelResponse) and isinstance(result, ModelResponse):
        pairs = zip(calls_of(message), calls_of(result), strict=True)
        changed = [call.tool_call_id for call, stored in pairs if call.args != stored.args]
        result.metadata = {**(result.metadata or {}), _MASKED: changed} if changed else result.metadata
    return result


def changed(message: ModelMessage, change: Callable[[dict[str, Any]], dict[str, Any]]) -> ModelMessage:
    """The message that `change` makes of its JSON."""
    return message_type().validate_python(change(_plain(message)))


def masked_calls(messages: Sequence[ModelMessage]) -> set[str]:
    """Calls of the last response whose arguments were masked when they were stored: they cannot be run again."""
    last = next((each for each in reversed(messages) if isinstance(each, ModelResponse)), None)
    return set() if last is None else set((last.metadata or {}).get(_MASKED, ()))


def encode_small(message: ModelMessage, *, beside: Sequence[Any] = ()) -> str:
    """For messages that are known to fit a row. `beside`: stored files that belong to the text of the first part."""
    if not beside:
        return _encoded(message).decode()
    body = _plain(message)
    first = body["parts"][0]
    first["content"] = [first["content"], *beside]
    return row_json.write(body)


def _plain(message: ModelMessage) -> dict[str, Any]:
    try:
        return message_type().dump_python(message, mode="json")
    except Exception as exc:  # as in `_encoded`
        log.info("a message is cleaned before it is looked at", error=type(exc).__name__)
    make_plain(message)
    return message_type().dump_python(message, mode="json")


def _encoded(message: ModelMessage) -> bytes:
    try:
        body = message_type().dump_json(message)
        if b"\\u0000" not in body and row_json.is_readable(body):  # a NUL: ids and names stand in columns too
            return body
    except Exception as exc:  # whatever it was: it is cleaned, and that is written
        log.info("a message is cleaned before it is stored", error=type(exc).__name__)
    make_plain(message)
    return message_type().dump_json(message)


async def decode(files: FileStore, body: str) -> ModelMessage:
    return message_type().validate_json(await unpack(files, body))


def encode_part(part: ToolReturnPart) -> dict[str, Any]:
    return _part_type().dump_python(part, mode="json", fallback=clean.words_of)


def decode_part(data: dict[str, Any]) -> ToolReturnPart:
    return _part_type().validate_python(data)


async def load(database: Database, files: FileStore, session_id: SessionId, *, after: int = 0) -> list[Entry]:
    """The stored history after a position as the model sees it, read in pages. What cannot be read says so there.

    Messages are decoded where they are read, and not on the event loop: others do not wait for it.
    """
    entries: list[Entry] = []
    while True:
        begin = entries[-1].position if entries else after

        def page(
            connection: sa.Connection, begin: int = begin
        ) -> list[tuple[messages.MessageRow, ModelMessage | None]]:
            rows = messages.page(connection, session_id, after=begin, limit=_PAGE, seen_only=True)
            return [(row, _decoded(row.body)) for row in rows]

        rows = await database.read(page, is_single=True)
        for row, message in rows:
            entries.append(Entry(message or await read_row(files, row), row.position, row.turn_id, row.event))
        if len(rows) < _PAGE:
            return _joined(entries) if any(unreadable.is_stand_in(each.message) for each in entries) else entries


def _decoded(body: str) -> ModelMessage | None:
    """None for one that has parts elsewhere, or that cannot be read."""
    if is_packed(body):
        return None
    try:
        return message_type().validate_json(body)
    except ValueError:
        return None


async def read_row(files: FileStore, row: messages.MessageRow) -> ModelMessage:
    """In place of one that cannot be read, one that says so."""
    try:
        return await decode(files, row.body)
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        log.error("a stored message cannot be read", position=row.position, error=last_line(exc))
        return unreadable.stand_in(row.kind)


def _joined(entries: list[Entry]) -> list[Entry]:
    whole = unreadable.joined([each.message for each in entries])
    return [replace(each, message=message) for each, message in zip(entries, whole, strict=True)]


def calls_of(response: ModelResponse) -> list[ToolCallPart]:
    return [part for part in response.parts if isinstance(part, ToolCallPart)]


def has_system_prompt(messages: Iterable[ModelMessage]) -> bool:
    return any(isinstance(part, SystemPromptPart) for message in messages for part in message.parts)


def closing_line(output: Any, own: Sequence[ModelMessage]) -> str | None:
    """A turn that ran tools and ended without a word still ends with one; `own` are its messages."""
    if not isinstance(output, str) or output.strip():
        return None
    parts = (part for message in own for part in message.parts)
    tools = dict.fromkeys(part.tool_name for part in parts if isinstance(part, ToolReturnPart))
    return f"Done. Tools used: {', '.join(tools)}." if tools else None


def says_nothing(response: ModelResponse) -> bool:
    """The model chose to end without a word and without a call; reasoning is no word."""
    is_own_choice = response.finish_reason in (None, "stop")
    spoken = [part for part in response.parts if not isinstance(part, ThinkingPart)]
    return is_own_choice and all(isinstance(part, TextPart) and not part.content.strip() for part in spoken)


def answered_in(request: ModelRequest) -> set[str]:
    return {part.tool_call_id for part in request.parts if isinstance(part, ToolReturnPart)}


def open_calls(history: Sequence[ModelMessage]) -> list[ToolCallPart]:
    """The calls of the last response that nothing in history answers."""
    answered: set[str] = set()
    for message in reversed(history):
        if isinstance(message, ModelResponse):
            return [call for call in calls_of(message) if call.tool_call_id not in answered]
        answered |= answered_in(message)
    return []


def closed(history: Iterable[ModelMessage], text: str) -> list[ModelMessage]:
    """A history from elsewhere without open calls: each unanswered one gets a truthful answer right after it."""
    result: list[ModelMessage] = []
    answered: set[str] = set()
    for message in reversed(list(history)):
        if isinstance(message, ModelRequest):
            answered |= answered_in(message)
        else:
            missing = [call for call in calls_of(message) if call.tool_call_id not in answered]
            if missing:
                parts = [interrupted(call.tool_name, call.tool_call_id, text) for call in missing]
                result.append(ModelRequest(parts=list(parts)))
            answered = set()
        result.append(message)
    return result[::-1]
