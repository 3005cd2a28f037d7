"""The sessions of one owner: made, found, listed, deleted."""

import builtins
import hashlib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from pydantic_ai.messages import ModelMessage
from pydantic_core import to_json

from outlast import ids
from outlast.errors import Conflict, IdempotencyMismatch, InvalidInput, NotFound
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.ids import OwnerId, SessionId
from outlast.sessions import delete, profile
from outlast.sessions.history import closed, encode
from outlast.sessions.profile import Profile
from outlast.sessions.services import Services
from outlast.sessions.session import Session
from outlast.store import creations, messages, paging, sessions
from outlast.store.paging import Page
from outlast.store.sessions import Wanted
from outlast.store.unit import Unit
from outlast.tools.hints import UNSET, Unset
from outlast.tools.outcomes import MAY_HAVE_RUN

Bodies = Sequence[tuple[str, str]]


class Sessions:
    """The sessions of one owner."""

    def __init__(self, services: Services, agents: Sequence[str], owner_id: OwnerId) -> None:
        self._services = services
        self._agents = agents
        self._owner_id = owner_id

    async def create(
        self,
        *,
        agent: str | None = None,
        model: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        budget: timedelta | Unset | None = UNSET,
        history: Sequence[ModelMessage] = (),
        external_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Session:
        """A new session, optionally going on from a history that pydantic-ai made elsewhere.

        With `external_id` the owner's session of that name is given back if there is one, and else made: there is
        never a second one. With `idempotency_key` a repeat within 24 hours gives the session that the first made.
        """
        name = agent or self._agents[0]
        if name not in self._agents:
            raise InvalidInput(f"There is no agent {name!r} here: use one of {sorted(self._agents)}.")
        profile.check(Profile(title, metadata or {}, model), models=self._services.models)
        if external_id is not None:
            profile.check_name(external_id, "external id")
        session_id = ids.session_id()
        bodies = await self._encode(session_id, history)
        key = _key(idempotency_key, "create", name, model, title, metadata, str(budget), external_id, history)

        def create(unit: Unit) -> SessionId:
            known = None if external_id is None else sessions.named(unit.connection, self._owner_id, external_id)
            made = self._made_before(unit, key, known or session_id) or known
            if made is not None:
                return made
            is_new = sessions.insert(
                unit,
                session_id,
                owner_id=self._owner_id,
                agent=name,
                model=model,
                title=title,
                metadata=metadata or {},
                budget=budget,
                external_id=external_id,
            )
            if not is_new:
                return self._made_meanwhile(unit, key, external_id or "")
            told = {"agent": name, "title": title, **({"external_id": external_id} if external_id else {})}
            number = unit.append(session_id, [Draft(EventType.SESSION_CREATED, told)])
            for kind, body in bodies:
                messages.append(unit, unit.lock(session_id), turn_id=None, kind=kind, body=body, event=number)
            return session_id

        return await self.get(await self._services.database.transaction(create, name="create"))

    async def get(self, session_id: SessionId | str) -> Session:
        row = await self._services.database.read(
            lambda connection: sessions.get(connection, SessionId(session_id), self._owner_id)
        )
        if row is None:
            raise NotFound("There is no such session.", id=session_id)
        return Session(self._services, row)

    async def list(
        self,
        *,
        limit: int = 50,
        before: str | None = None,
        search: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        archived: bool | None = False,
        external_id: str | None = None,
        agent: str | None = None,
    ) -> Sequence[Session]:
        """The first page of `page`, or the one after a cursor."""
        found = await self.page(
            limit=limit,
            before=before,
            search=search,
            metadata=metadata,
            archived=archived,
            external_id=external_id,
            agent=agent,
        )
        return found.items

    async def page(
        self,
        *,
        limit: int = 50,
        before: str | None = None,
        search: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        archived: bool | None = False,
        external_id: str | None = None,
        agent: str | None = None,
    ) -> Page[Session]:
        """Latest change first; `before` is the `next` of the last page.

        `search` is a part of the title or of what a person wrote, in any case. `metadata` are values of top-level
        keys, text, numbers, booleans or None. `archived` shows those that are, that are not, or (None) both.
        """
        for value in (metadata or {}).values():
            if not isinstance(value, str | int | float | bool | None):
                raise InvalidInput("Metadata is filtered by text, numbers, booleans and null only.")
        profile.check_metadata(metadata or {})
        if search is not None:
            profile.check_name(search, "search", most=profile.MAX_TITLE)
        wanted = Wanted(search, metadata, archived, external_id, agent)
        most = paging.clamp(limit)
        found = await self._services.database.read(
            lambda connection: sessions.page(connection, self._owner_id, limit=most, before=before, wanted=wanted)
        )
        return Page([Session(self._services, row) for row in found.items], found.next)

    async def delete(self, session_id: SessionId | str) -> None:
        """Stop and cancel whatever runs in it, and remove it. From the commit on it is not there for anybody.

        Returns when its rows and files are gone; if this process ends before, the next one goes on.
        """
        key = SessionId(session_id)
        limits = self._services.limits.turns
        await self._services.database.transaction(
            lambda unit: delete.mark(unit, key, owner_id=self._owner_id, limits=limits), name="delete"
        )
        await self._services.deletions.finish(key)

    def _made_before(self, unit: Unit, key: tuple[str, str] | None, session_id: SessionId) -> SessionId | None:
        """What was made under the idempotency key; None: it is taken for the session that is made now."""
        if key is None:
            return None
        name, fingerprint = key
        made = creations.begin(unit, self._owner_id, name, fingerprint=fingerprint, session_id=session_id)
        if made is None:
            return None
        if made.fingerprint != fingerprint:
            raise IdempotencyMismatch("This idempotency key was used for something else: use a new one.", key=name)
        if sessions.get(unit.connection, made.session_id, self._owner_id) is None:
            raise Conflict("The session that was made with this idempotency key was deleted: use a new key.")
        return made.session_id

    def _made_meanwhile(self, unit: Unit, key: tuple[str, str] | None, external_id: str) -> SessionId:
        """Another one was quicker to make the session of this name, and has committed it."""
        found = sessions.named(unit.connection, self._owner_id, external_id)
        if found is None:
            raise Conflict("The session of this external id is being deleted: try again.")
        if key is not None:
            creations.point(unit, self._owner_id, key[0], found)
        return found

    async def _encode(self, session_id: SessionId, given: Sequence[ModelMessage]) -> Bodies:
        whole = closed(given, MAY_HAVE_RUN)
        return [(each.kind, await encode(self._services.files, session_id, each)) for each in whole]


def _key(name: str | None, *asked: Any) -> tuple[str, str] | None:
    """An idempotency key with the fingerprint of what is asked under it."""
    if name is None:
        return None
    profile.check_name(name, "idempotency key")
    return name, hashlib.sha256(to_json(builtins.list(asked), bytes_mode="base64")).hexdigest()
