"""The sessions of one owner: made, found, listed, forked, imported, deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Unpack

from pydantic_ai.messages import ModelMessage

from outlast import ids, paging
from outlast.agents.messages import preview
from outlast.agents.messages.history import closed, encode, masked
from outlast.calls.outcomes import MAY_HAVE_RUN
from outlast.errors import InvalidInput
from outlast.handles import reading
from outlast.handles.fork import copied, copied_files, copied_results
from outlast.handles.one_session import export
from outlast.handles.one_session.constrained import constrained, of_chain
from outlast.handles.sending import send
from outlast.handles.services.services import Services
from outlast.handles.services.slices import in_slices
from outlast.handles.session import Session
from outlast.handles.turn import Sent
from outlast.ids import OwnerId, SessionId
from outlast.paging import Page
from outlast.store.repositories import constraints, files, outputs, sessions, summaries
from outlast.store.repositories.sessions import SessionRow, Wanted
from outlast.store.repositories.summaries import Summary
from outlast.store.unit import Unit
from outlast.tool_hints import UNSET, Unset
from outlast.transitions import deletion
from outlast.transitions.sessions import creation, profile
from outlast.transitions.sessions.creation import Key, NewSession
from outlast.transitions.sessions.profile import Profile
from outlast.values.check import check_characters
from outlast.wire.constraints import Binding, Permissions
from outlast.wire.message import SendOptions


class Sessions:
    """The sessions of one owner."""

    def __init__(self, services: Services, owner_id: OwnerId) -> None:
        self._services = services
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
        permissions: Permissions | None = None,
        is_dry_run: bool = False,
        binding: Binding | None = None,
        idempotency_key: str | None = None,
    ) -> Session:
        """A new session, optionally going on from a history that pydantic-ai made elsewhere.

        `agent` is one of this process, or one that a worker has recorded; the first of this process if left out.
        With `external_id` the owner's session of that name is given back if there is one, and else made: there is
        never a second one. With `idempotency_key` a repeat within 24 hours gives the session that the first made.
        With `binding` the owner's session for that resource is given back if there is one, and else made, once.
        """
        name = self._services.agents.default if agent is None else agent
        models = await self._services.agents.models_of(name)
        title, metadata = self._services.secrets.mask(title), self._services.secrets.mask(metadata)
        profile.check(Profile(title, metadata or {}, model), models=models)
        if external_id is not None:
            profile.check_name(external_id, "external id")
        limited = constrained(permissions, is_dry_run=is_dry_run, binding=binding)
        if binding is not None and external_id is not None:
            raise InvalidInput("Give an external_id or a binding: each of them finds one session of its own.")
        new = NewSession(
            name,
            model,
            title,
            metadata or {},
            budget,
            external_id,
            constraints=limited,
            resource=limited.resource,
        )
        asked = (name, model, title, metadata, str(budget), external_id, permissions, is_dry_run, binding, history)
        key = creation.key_of(idempotency_key, "create", *asked)
        return await self._make(new, closed(history, MAY_HAVE_RUN), key)

    async def get(self, session_id: SessionId | str) -> Session:
        return Session(self._services, await self._row(session_id))

    async def send(self, session_id: SessionId | str, text: str, **options: Unpack[SendOptions]) -> Sent:
        """As `Session.send`, for whoever has only its id: without files, nothing is looked at before it is accepted."""
        return await send(self._services, SessionId(session_id), text, owner_id=self._owner_id, **options)

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
        parent: SessionId | str | None = None,
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
            parent=parent,
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
        parent: SessionId | str | None = None,
    ) -> Page[Session]:
        """Latest change first; `before` is the `next` of the last page.

        `search` is a part of the title or of what a person wrote, in any case. `metadata` are values of top-level
        keys, text, numbers, booleans or None. `archived` shows those that are, that are not, or (None) both. `parent`
        shows the sub-sessions of a session; they are in no other list.
        """
        for value in (metadata or {}).values():
            if not isinstance(value, str | int | float | bool | None):
                raise InvalidInput("Metadata is filtered by text, numbers, booleans and null only.")
            if isinstance(value, int) and abs(value) >= 2**63:
                raise InvalidInput("Metadata is filtered by numbers of at most 64 bits.")
        profile.check_metadata(metadata or {})
        if search is not None:
            profile.check_name(search, "search", most=profile.MAX_TITLE)
        check_characters(f"{external_id or ''}{agent or ''}{parent or ''}{before or ''}", "filter")
        wanted = Wanted(search, metadata, archived, external_id, agent, parent)
        most = paging.clamp(limit)
        found = await self._services.database.read(
            lambda connection: sessions.page(connection, self._owner_id, limit=most, before=before, wanted=wanted)
        )
        return Page([Session(self._services, row) for row in found.items], found.next)

    async def delete(self, session_id: SessionId | str) -> None:
        """Stop and cancel whatever runs in it and below it, and remove it with its sub-sessions.


        Returns when its rows and files are gone; if this process ends before, the next one goes on.
        """
        key = SessionId(session_id)
        marked = await self._services.database.transaction(
            lambda unit: deletion.mark(unit, key, owner_id=self._owner_id), name="delete"
        )
        for each in marked:
            await self._services.deletions.finish(each)

    async def fork(
        self,
        session_id: SessionId | str,
        *,
        at: int | None = None,
        title: str | None = None,
        idempotency_key: str | None = None,
    ) -> Session:
        """A new session that begins with this one's history, or with its part up to the message at a position.

        Tasks and waiting messages stay with the old one; what its history says of them stands in the new one too.
        Permissions, dry run and binding come along, of a sub-session also what holds there from the sessions above it;
        a binding still finds the old one.
        """
        if title is not None:
            profile.check_name(title, "title", most=profile.MAX_TITLE)
        row = await self._row(session_id)
        source = Session(self._services, row)
        key = creation.key_of(idempotency_key, "fork", source.id, at, title)
        kept = await copied(self._services, source, at)
        chain = await self._services.database.read(lambda connection: constraints.chain(connection, source.id))
        said = kept.messages
        origin = {"forked_from": source.id}
        new = NewSession(
            source.agent,
            source.model,
            title or (source.title if source.title_from == "person" else None),
            source.metadata,
            source.budget,
            origin=origin,
            preview=source.preview if said else None,
            constraints=of_chain(chain),
        )
        return await self._make(new, said, key, source=source.id, shortened=kept.summaries)

    async def import_(self, document: Mapping[str, Any], *, idempotency_key: str | None = None) -> Session:
        """A new session of this owner from the messages of an exported one. Its turns and tasks are not made again.

        An agent or a model that is not known here is replaced by the default. What only a server may say is left out:
        system prompts, files by reference, tags of the runtime. The agent's own system prompt is sent instead.
        """
        async with self._services.imports(self._owner_id):
            return await self._import(document, idempotency_key)

    async def _row(self, session_id: SessionId | str) -> SessionRow:
        look = partial(reading.there, session_id=SessionId(session_id), owner_id=self._owner_id)
        return await self._services.database.read(look, is_single=True)

    async def _import(self, document: Mapping[str, Any], idempotency_key: str | None) -> Session:
        given = await export.read(document)
        agents, agent = self._services.agents, given.agent
        if agent is None or await agents.find_models(agent) is None:
            agent = agents.default
        model = given.model if given.model in await agents.models_of(agent) else None
        origin = {"imported_from": given.source}
        new = NewSession(agent, model, given.title, given.metadata, origin=origin, constraints=given.constraints)
        key = creation.key_of(idempotency_key, "import", document)
        return await self._make(new, closed(given.messages, MAY_HAVE_RUN), key)

    async def _make(
        self,
        new: NewSession,
        said: Sequence[ModelMessage],
        key: Key | None,
        *,
        source: SessionId | None = None,
        shortened: Sequence[Summary] = (),
    ) -> Session:
        session_id = ids.session_id()
        try:
            clean: list[ModelMessage] = []
            bodies: list[tuple[str, str]] = []
            async for some in in_slices(said):
                shown = [masked(each, self._services.secrets) for each in some]
                clean += shown
                bodies += [(each.kind, await encode(self._services.files, session_id, each)) for each in shown]
            new = replace(new, preview=new.preview or preview.of_history(clean))
            results = [] if source is None else await copied_results(self._services, source, session_id, said)

            named = [] if source is None else await copied_files(self._services, source, session_id)

            def make(unit: Unit) -> SessionId:
                made = creation.make(unit, session_id, new, bodies, owner_id=self._owner_id, key=key)
                for each in named if made == session_id else ():
                    files.add(unit, made, each)
                for each in results if made == session_id else ():
                    outputs.keep_result(unit, made, each.call_id, file=each.file, characters=each.characters)
                for each in shortened if made == session_id else ():
                    summaries.add(unit, made, each)
                return made

            made = await self._services.database.transaction(make, name="create")
        except Exception:
            await self._services.files.remove_all(session_id)
            raise
        if made != session_id:
            await self._services.files.remove_all(session_id)
        return await self.get(made)
