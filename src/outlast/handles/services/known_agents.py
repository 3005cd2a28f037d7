"""The agents that sessions can have: those of this process, and those that a worker has recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from outlast.errors import InvalidInput
from outlast.store.database import Database
from outlast.store.repositories import agent_records, agents
from outlast.values.check import check_characters


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """`version` is None until a worker has recorded it. `has_worker`: a worker is there that can run it."""

    name: str
    models: Sequence[str]
    version: str | None
    has_worker: bool


class KnownAgents:
    """Names of this process are known without a look at the database."""

    def __init__(self, database: Database, here: Mapping[str, Sequence[str]]) -> None:
        self._database = database
        self._here = here

    @property
    def default(self) -> str:
        """The agent of a session that names none: the first of this process."""
        return next(iter(self._here))

    async def find_models(self, name: str) -> Sequence[str] | None:
        """The models that sessions of an agent may ask for; None: nobody has ever had the agent."""
        if name in self._here:
            return self._here[name]
        check_characters(name, "name of the agent")
        found = await self._database.read(lambda connection: agent_records.find(connection, name))
        return None if found is None else found.models

    async def models_of(self, name: str) -> Sequence[str]:
        """The same. Raises `InvalidInput` for an agent that nobody has ever had."""
        found = await self.find_models(name)
        if found is None:
            raise await self.unknown(name)
        return found

    async def unknown(self, name: str) -> InvalidInput:
        known = sorted(each.name for each in await self.list())
        return InvalidInput(f"There is no agent {name!r} here: use one of {known}.", agents=known)

    async def list(self) -> Sequence[KnownAgent]:
        """Those of this process first, in the order given, then the others by name."""

        def look(connection: sa.Connection) -> tuple[list[agent_records.RecordedAgent], frozenset[str]]:
            return agent_records.every(connection), agents.present(connection)

        recorded, living = await self._database.read(look)
        versions = {each.name: each.version for each in recorded}
        models = {**self._here, **{each.name: each.models for each in recorded if each.name not in self._here}}
        return [KnownAgent(name, list(of), versions.get(name), name in living) for name, of in models.items()]
