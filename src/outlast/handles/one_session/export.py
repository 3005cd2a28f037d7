"""A session as one JSON document, and back: what was said, and what is known of its turns and tasks."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import sqlalchemy as sa
from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ToolReturnPart,
    sanitize_messages,
)
from pydantic_core import to_jsonable_python

from outlast.agents.messages import history
from outlast.agents.messages.harmless import harmless
from outlast.calls.outcomes import normalise
from outlast.errors import InvalidInput
from outlast.handles.one_session import constrained
from outlast.handles.services.services import Services
from outlast.handles.services.shown import Shown
from outlast.handles.services.slices import in_slices
from outlast.ids import SessionId
from outlast.store.files.spill import Room
from outlast.store.repositories import constraints, messages, tasks, turns
from outlast.store.repositories.constraints import ConstraintsRow
from outlast.store.repositories.messages import MessageRow
from outlast.store.repositories.sessions import SessionRow
from outlast.transitions.sessions import profile
from outlast.transitions.sessions.constraints import Constraints

FORMAT = "outlast.session/1"
MAX_MESSAGES = 20_000
_PAGE = 200
_INLINED = 32 * 1024 * 1024
_MOST = 10_000


async def export(services: Services, row: SessionRow) -> dict[str, Any]:
    """Large values are put back in place up to 32 MiB in all; what is left out is named. Secrets are masked."""
    room = Room(_INLINED)
    said: list[dict[str, Any]] = []
    for each in await _all_messages(services, row.id):
        room.where = f"messages[{len(said)}]"
        message = await history.shown(services.files, each, room)
        place = {"position": each.position, "turn_id": each.turn_id, "superseded_by": each.superseded_by}
        said.append({**place, "message": services.shown.message(message)})

    def rest(connection: sa.Connection) -> tuple[Sequence[Any], Sequence[Any], Sequence[ConstraintsRow]]:
        all_tasks = tasks.page(connection, session_id=row.id, limit=_MOST)
        return turns.of_session(connection, row.id, _MOST), all_tasks, constraints.chain(connection, row.id)

    all_turns, all_tasks, chain = await services.database.read(rest)
    shown_tasks = [services.shown.stored_task(each) for each in all_tasks[::-1]]
    limits = constrained.of_chain(chain)
    document = {
        "format": FORMAT,
        "session": {
            "id": row.id,
            "title": services.shown.value(row.title),
            "agent": row.agent,
            "model": row.model,
            "metadata": services.shown.value(dict(row.metadata)),
            "external_id": row.external_id,
            "permissions": services.shown.value(limits.permissions),
            "is_dry_run": limits.is_dry_run,
            "binding": services.shown.value(limits.binding),
            "created_at": row.created_at,
            "updated_at": row.updated_at,
        },
        "messages": said,
        "turns": [_turn(each, services.shown) for each in all_turns],
        "tasks": [{**each.snapshot, "result": each.result, "created_at": each.created_at} for each in shown_tasks],
        "left_out": room.left_out,
    }
    return to_jsonable_python(document)


async def _all_messages(services: Services, session_id: SessionId) -> list[MessageRow]:
    found: list[MessageRow] = []
    while True:
        after = found[-1].position if found else 0

        def page(connection: sa.Connection, after: int = after) -> list[MessageRow]:
            return messages.page(connection, session_id, after=after, limit=_PAGE)

        rows = await services.database.read(page)
        found += rows
        if len(rows) < _PAGE:
            return found


def _turn(row: turns.TurnRow, shown: Shown) -> dict[str, Any]:
    return {
        "id": row.id,
        "origin": row.origin,
        "state": row.state,
        "model": row.model,
        "usage": shown.spent(row.usage),
        "error": shown.error(row.error),
        "created_at": row.created_at,
        "ended_at": row.ended_at,
    }


@dataclass(frozen=True, slots=True)
class Document:
    """What an import takes from a document. Turns and tasks of it are not made again."""

    source: str | None
    title: str | None
    agent: str | None
    model: str | None
    metadata: Mapping[str, Any]
    messages: Sequence[ModelMessage]
    constraints: Constraints


async def read(document: Any) -> Document:
    """Check a document that came from anywhere; says what is wrong with it and where. Others run meanwhile."""
    fields = _object(document, "The document")
    profile.check_json({name: value for name, value in fields.items() if name != "messages"}, "document")
    if fields.get("format") != FORMAT:
        raise InvalidInput(f"The document's format is {fields.get('format')!r}: only {FORMAT!r} is known.")
    about = _object(fields.get("session", {}), "session")
    listed = fields.get("messages")
    if not isinstance(listed, list):
        raise InvalidInput("The document has no list of messages.")
    entries = cast(list[Any], listed)
    if len(entries) > MAX_MESSAGES:
        raise InvalidInput(f"The document has {len(entries)} messages; at most {MAX_MESSAGES} are taken.")
    said: list[tuple[int, ModelMessage]] = []
    async for some in in_slices(list(enumerate(entries))):
        profile.check_json({"messages": [each for _, each in some]}, "document")
        given = [(at, _object(each, f"messages[{at}]")) for at, each in some]
        said += [(at, _message(each.get("message"), at)) for at, each in given if not each.get("superseded_by")]
    _check_answers(said)
    kept: list[ModelMessage] = []
    async for part in in_slices(said):
        kept += _harmless(part)
    metadata = _object(about.get("metadata") or {}, "session.metadata")
    title = _text(about, "title")
    if title is not None:
        profile.check_name(title, "title", most=profile.MAX_TITLE)
    profile.check_metadata(metadata)
    return Document(
        _text(about, "id"),
        title,
        _text(about, "agent"),
        _text(about, "model"),
        metadata,
        kept,
        constrained.imported(about),
    )


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{what} is not an object.")
    return dict(cast(Mapping[str, Any], value))


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"session.{name} is not text.")
    return value


def _message(value: Any, at: int) -> ModelMessage:
    try:
        return history.message_type().validate_python(value)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidInput(f"messages[{at}].message is not a message: {where}: {first['msg']}.") from exc


def _harmless(said: Sequence[tuple[int, ModelMessage]]) -> list[ModelMessage]:
    """Without what only this server may say, or what it would be asked to fetch with its own rights.

    A document is text of its owner: no system prompts, no files of providers or of this network, none of our tags.
    """
    asked = [message for _, message in said]
    calls = [call.tool_call_id for each in asked if isinstance(each, ModelResponse) for call in history.calls_of(each)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        kept = sanitize_messages(asked, resolved_tool_call_ids=calls)
    return [
        replace(each, parts=[*map(_plain, each.parts)]) if isinstance(each, ModelRequest) else each for each in kept
    ]


def _plain(part: ModelRequestPart) -> ModelRequestPart:
    return harmless(replace(part, content=normalise(part.content)) if isinstance(part, ToolReturnPart) else part)


def _check_answers(said: Sequence[tuple[int, ModelMessage]]) -> None:
    """No provider takes an answer to a call that was not asked for just before."""
    asked: set[str] = set()
    for at, message in said:
        if isinstance(message, ModelResponse):
            asked = {call.tool_call_id for call in history.calls_of(message)}
            continue
        for call_id in history.answered_in(message):
            if call_id not in asked:
                raise InvalidInput(f"messages[{at}] answers the call {call_id!r}, which was not asked for before it.")
            asked.discard(call_id)
