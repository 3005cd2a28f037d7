"""The sessions of whoever asks: made, found, listed, copied, deleted."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Unpack
from uuid import uuid4

from outlast.client.connection import Connection, path
from outlast.client.sending import send
from outlast.client.session import Session
from outlast.client.turn import Sent
from outlast.paging import Page
from outlast.tool_hints import UNSET, Unset
from outlast.wire.constraints import Binding, Permissions
from outlast.wire.forms import ListOf
from outlast.wire.message import SendOptions
from outlast.wire.session import SessionAnswer, SessionBody, seconds_of


class Sessions:
    """Another owner's id and an unknown id get the same answer."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def create(
        self,
        *,
        agent: str | None = None,
        model: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        budget: timedelta | Unset | None = UNSET,
        external_id: str | None = None,
        permissions: Permissions | None = None,
        is_dry_run: bool = False,
        binding: Binding | None = None,
        idempotency_key: str | None = None,
    ) -> Session:
        """Make a session, once, also over a connection that is cut; or find that of this `external_id` or `binding`."""
        body = SessionBody.model_construct(
            agent=agent,
            model=model,
            title=title,
            metadata=dict(metadata or {}),
            budget_seconds=seconds_of(budget),
            external_id=external_id,
            permissions=permissions,
            is_dry_run=is_dry_run,
            binding=binding,
        ).model_dump(mode="json")
        return await self._made("/v1/sessions", body, idempotency_key)

    async def get(self, session_id: str) -> Session:
        return self._session(await self._connection.get(path("sessions", session_id)))

    async def send(self, session_id: str, text: str, **options: Unpack[SendOptions]) -> Sent:
        """As `Session.send`, for whoever has only its id."""
        return await send(self._connection, session_id, text, **options)

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
        parent: str | None = None,
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
        parent: str | None = None,
    ) -> Page[Session]:
        """The one that changed last first; `archived=None` takes both kinds. Give `next` as `before`."""
        answer = await self._connection.get(
            "/v1/sessions",
            limit=limit,
            cursor=before,
            search=search,
            metadata=None if metadata is None else json.dumps(metadata),
            archived="any" if archived is None else archived,
            external_id=external_id,
            agent=agent,
            parent=parent,
        )
        found = ListOf[SessionAnswer].model_validate(answer)
        return Page([Session(self._connection, each) for each in found.items], found.next)

    async def delete(self, session_id: str) -> None:
        """For good: what runs in it is stopped, and its readers end."""
        await self._connection.ask("DELETE", path("sessions", session_id))

    async def fork(
        self,
        session_id: str,
        *,
        at: int | None = None,
        title: str | None = None,
        idempotency_key: str | None = None,
    ) -> Session:
        """A new session with the history of another, all of it or up to the message at a position."""
        return await self._made(path("sessions", session_id, "fork"), {"at": at, "title": title}, idempotency_key)

    async def import_(self, document: Mapping[str, Any], *, idempotency_key: str | None = None) -> Session:
        """A new session from what `Session.export` gave, here or elsewhere."""
        return await self._made("/v1/sessions/import", dict(document), idempotency_key)

    async def _made(self, where: str, body: Mapping[str, Any], key: str | None) -> Session:
        return self._session(await self._connection.ask("POST", where, body=body, key=key or str(uuid4())))

    def _session(self, answer: Any) -> Session:
        return Session(self._connection, SessionAnswer.model_validate(answer))
