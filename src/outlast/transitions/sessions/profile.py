"""A session's profile: what people set about it, beside what happens in it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json

from outlast.errors import InvalidInput, SessionBusy
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.ids import SessionId
from outlast.store.locked_session import LockedSession
from outlast.store.repositories import searched
from outlast.store.unit import Unit
from outlast.tool_hints import UNSET, Unset
from outlast.values.check import check_characters

MAX_TITLE = 500
MAX_METADATA = 16 * 1024
MAX_NAME = 200
"""Characters of an external id or an idempotency key."""

_ROOM = 10
"""Levels that are left for what stands around a value, such as an event: readers take 200 in all."""


@dataclass(frozen=True, slots=True)
class Profile:
    """New values; what is UNSET stays as it is."""

    title: str | Unset | None = UNSET
    metadata: Mapping[str, Any] | Unset = UNSET
    model: str | Unset | None = UNSET
    is_archived: bool | Unset = UNSET
    read_to: int | Unset = UNSET
    """The number of the last event that a person has seen."""
    agent: str | Unset = UNSET


def check(profile: Profile, *, models: Collection[str]) -> None:
    if isinstance(profile.title, str):
        check_name(profile.title, "title", most=MAX_TITLE)
    if not isinstance(profile.metadata, Unset):
        check_metadata(profile.metadata)
    if isinstance(profile.model, str):
        check_model(profile.model, models)


def check_model(name: str | None, models: Collection[str]) -> None:
    if name is None or name in models:
        return
    known = f"use one of {sorted(models)}" if models else "the agent's own is the only one; others: Outlast(models=...)"
    raise InvalidInput(f"The model {name!r} is not offered here: {known}.")


def check_name(text: str, what: str, *, most: int = MAX_NAME) -> None:
    if not text.strip():
        raise InvalidInput(f"The {what} is empty: leave it out instead.")
    if len(text) > most:
        raise InvalidInput(f"The {what} has {len(text)} characters; at most {most} are taken.")
    check_characters(text, what)


def check_metadata(metadata: Mapping[str, Any]) -> None:
    encoded = check_json(metadata, "metadata")
    if len(encoded) > MAX_METADATA:
        raise InvalidInput(f"The metadata has {len(encoded)} bytes as JSON; at most {MAX_METADATA} are taken.")
    if b"\\u0000" in encoded:
        raise InvalidInput("The metadata holds a NUL character: remove it.")


def check_json(value: Any, what: str) -> bytes:
    """Refuse what could be written but not read back, or only here; gives it as JSON."""
    try:
        encoded = to_json(value)
        from_json(b"[" * _ROOM + encoded + b"]" * _ROOM, allow_inf_nan=False)
    except (PydanticSerializationError, ValueError) as exc:
        raise InvalidInput(f"The {what} is not JSON, or nested too deeply: {exc}.") from exc
    return encoded


def change(unit: Unit, session_id: SessionId, profile: Profile, *, models: Collection[str] = (), owner_id: str) -> None:
    """Set what is really new, and tell of just that. To look at a session or to file it does not make it newer.

    `models` are those of the agent that is set: a model that the session has and the new agent has not is taken away.
    """
    session = unit.lock(session_id, owner_id=owner_id)
    if not isinstance(profile.agent, Unset) and profile.agent != session.agent:
        _check_idle(session)
        if isinstance(profile.model, Unset) and session.model is not None and session.model not in models:
            profile = replace(profile, model=None)
    columns, told = _changes(session, profile)
    if not columns:
        return
    if told.keys() <= {"is_archived", "read_to", "is_unread"}:
        columns["updated_at"] = session.updated_at
    session.set(**columns)
    if "title" in columns:
        searched.change(unit, session_id, searched.TITLE, session.title, owner_id=owner_id)
    if told:
        unit.append(session_id, [Draft(EventType.SESSION_CHANGED, told)])


def name_by_model(unit: Unit, session_id: SessionId, title: str) -> None:
    """A title that a model made: only where there is none yet."""
    if unit.try_lock(session_id) and (session := unit.lock(session_id)).title is None:
        session.set(title=title, is_titled_by_model=True, updated_at=session.updated_at)
        searched.change(unit, session_id, searched.TITLE, title, owner_id=session.owner_id)
        unit.append(session_id, [Draft(EventType.SESSION_CHANGED, {"title": title, "title_from": "model"})])


def _check_idle(session: LockedSession) -> None:
    """A turn is of one agent from its beginning to its end."""
    if session.turn_id is not None:
        raise SessionBusy("A turn runs or waits: wait for its end or stop it, then change the agent.")


def _changes(session: LockedSession, profile: Profile) -> tuple[dict[str, Any], dict[str, Any]]:
    """The new values of columns, and what is told of them."""
    columns: dict[str, Any] = {}
    told: dict[str, Any] = {}
    for name in ("title", "model", "is_archived", "agent"):
        value = getattr(profile, name)
        if not isinstance(value, Unset) and value != getattr(session, name):
            columns[name] = told[name] = value
    if "title" in columns:
        columns["is_titled_by_model"] = False
    if not isinstance(profile.metadata, Unset) and dict(profile.metadata) != from_json(session.metadata):
        columns["metadata"] = to_json(profile.metadata).decode()
        told["metadata"] = from_json(columns["metadata"])
    if not isinstance(profile.read_to, Unset):
        read_to = min(profile.read_to, session.last_event)
        if read_to > session.read_event:
            columns["read_event"] = read_to
            if session.read_event < session.answered_event <= read_to:
                # Whoever reads on marks that again and again: the log only tells that it is no longer unread.
                told.update(read_to=read_to, is_unread=False)
    return columns, told
