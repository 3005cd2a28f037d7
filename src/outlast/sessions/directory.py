"""The sessions of one owner: made, found, listed."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from pydantic_ai.messages import ModelMessage

from outlast import ids
from outlast.errors import InvalidInput, NotFound
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.ids import OwnerId, SessionId
from outlast.sessions.history import closed, encode
from outlast.sessions.session import Services, Session
from outlast.store import messages, sessions
from outlast.store.unit import Unit
from outlast.tools.hints import UNSET, Unset
from outlast.tools.outcomes import MAY_HAVE_RUN


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
    ) -> Session:
        """A new session, optionally going on from a history that pydantic-ai made elsewhere."""
        name = agent or self._agents[0]
        if name not in self._agents:
            raise InvalidInput(f"There is no agent {name!r} here: use one of {sorted(self._agents)}.")
        if model is not None and model not in self._services.models:
            raise InvalidInput(f"The model {model!r} is not allowed here: use one of {sorted(self._services.models)}.")
        session_id = ids.session_id()
        bodies = await self._encode(session_id, history)

        def create(unit: Unit) -> None:
            sessions.insert(
                unit,
                session_id,
                owner_id=self._owner_id,
                agent=name,
                model=model,
                title=title,
                metadata=metadata or {},
                budget=budget,
            )
            number = unit.append(session_id, [Draft(EventType.SESSION_CREATED, {"agent": name, "title": title})])
            for kind, body in bodies:
                messages.append(unit, unit.lock(session_id), turn_id=None, kind=kind, body=body, event=number)

        await self._services.database.transaction(create, name="create")
        return await self.get(session_id)

    async def get(self, session_id: SessionId | str) -> Session:
        row = await self._services.database.read(
            lambda connection: sessions.get(connection, SessionId(session_id), self._owner_id)
        )
        if row is None:
            raise NotFound("There is no such session.", id=session_id)
        return Session(self._services, row)

    async def list(self, *, limit: int = 50, before: str | None = None) -> Sequence[Session]:
        """Newest first, a page at a time."""
        rows = await self._services.database.read(
            lambda connection: sessions.page(connection, self._owner_id, limit=min(limit, 500), before=before)
        )
        return [Session(self._services, row) for row in rows]

    async def _encode(self, session_id: SessionId, given: Sequence[ModelMessage]) -> Sequence[tuple[str, str]]:
        whole = closed(given, MAY_HAVE_RUN)
        return [(each.kind, await encode(self._services.files, session_id, each)) for each in whole]
