"""Making a session once: by its external id, the resource it is bound to, an idempotency key, or simply new."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pydantic_core import to_json

from outlast.errors import Conflict, IdempotencyMismatch
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.ids import SessionId
from outlast.store.repositories import creations, messages, sessions
from outlast.store.unit import Unit
from outlast.tool_hints import UNSET, Unset
from outlast.transitions.sessions import constraints, profile
from outlast.transitions.sessions.constraints import Constraints

Bodies = Sequence[tuple[str, str]]
"""Messages ready for their rows: kind and JSON."""


@dataclass(frozen=True, slots=True)
class NewSession:
    """What a session begins with. `origin` tells where it comes from, if it does not begin here."""

    agent: str
    model: str | None = None
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    budget: timedelta | Unset | None = UNSET
    external_id: str | None = None
    origin: Mapping[str, Any] = field(default_factory=dict[str, Any])
    preview: str | None = None
    constraints: Constraints = field(default_factory=Constraints)
    resource: str | None = None
    """What the owner has one session of: this one, if there is none yet."""
    parent_id: SessionId | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """An idempotency key, with the fingerprint of what is asked under it."""

    name: str
    fingerprint: str


def key_of(name: str | None, *asked: Any) -> Key | None:
    if name is None:
        return None
    profile.check_name(name, "idempotency key")
    return Key(name, hashlib.sha256(to_json(list(asked), bytes_mode="base64")).hexdigest())


def make(
    unit: Unit, session_id: SessionId, new: NewSession, bodies: Bodies, *, owner_id: str, key: Key | None
) -> SessionId:
    """Gives the id of the session that was made, now or before."""
    name = new.external_id
    known = _known(unit, owner_id, new)
    made = _made_before(unit, owner_id, key, known or session_id) or known
    if made is not None:
        return made
    is_new = sessions.insert(
        unit,
        session_id,
        owner_id=owner_id,
        agent=new.agent,
        model=new.model,
        title=new.title,
        metadata=new.metadata,
        budget=new.budget,
        external_id=name,
        preview=new.preview,
        permissions=constraints.replaced(None, new.constraints.permissions),
        is_dry_run=new.constraints.is_dry_run,
        binding=new.constraints.binding,
        resource=new.resource,
        parent_id=new.parent_id,
    )
    if not is_new:
        return _made_meanwhile(unit, owner_id, key, new)
    told = {"agent": new.agent, "title": new.title, **({"external_id": name} if name else {}), **new.origin}
    if new.constraints.is_dry_run:
        told["is_dry_run"] = True
    number = unit.append(session_id, [Draft(EventType.SESSION_CREATED, told)])
    for kind, body in bodies:
        messages.append(unit, unit.lock(session_id), turn_id=None, kind=kind, body=body, event=number)
    return session_id


def _known(unit: Unit, owner_id: str, new: NewSession) -> SessionId | None:
    if new.external_id is not None:
        return sessions.named(unit.connection, owner_id, new.external_id)
    return None if new.resource is None else sessions.of_resource(unit.connection, owner_id, new.resource)


def _made_before(unit: Unit, owner_id: str, key: Key | None, session_id: SessionId) -> SessionId | None:
    """What was made under the idempotency key; None: it is taken for the session that is made now."""
    if key is None:
        return None
    made = creations.begin(unit, owner_id, key.name, fingerprint=key.fingerprint, session_id=session_id)
    if made is None:
        return None
    if made.fingerprint != key.fingerprint:
        raise IdempotencyMismatch("This idempotency key was used for something else: use a new one.", key=key.name)
    if sessions.get(unit.connection, made.session_id, owner_id) is None:
        raise Conflict("The session that was made with this idempotency key was deleted: use a new key.")
    return made.session_id


def _made_meanwhile(unit: Unit, owner_id: str, key: Key | None, new: NewSession) -> SessionId:
    """Another one was quicker to make the session of this name or resource, and has committed it."""
    found = _known(unit, owner_id, new)
    if found is None:
        raise Conflict("The session of this external id or resource is being deleted: try again.")
    if key is not None:
        creations.point(unit, owner_id, key.name, found)
    return found
