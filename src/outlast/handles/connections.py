"""Connections: an owner's credentials for providers. Set, listed by name, removed; no handle gives a value."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal, NamedTuple

from outlast.errors import InvalidInput, NotFound
from outlast.ids import OwnerId
from outlast.store.database import Database
from outlast.store.repositories import connections as rows
from outlast.store.repositories.connections import ConnectionRow
from outlast.store.unit import Unit
from outlast.transitions.tasks import connections
from outlast.values.sealing import Sealing
from outlast.values.secrets import SHORTEST

MOST_BYTES = 64 * 1024
_BATCH = 100


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection as it may be shown: everything but its value."""

    provider: str
    state: Literal["ready", "unreadable"]
    """`unreadable`: no key of this process opens it. Set it again."""
    created_at: datetime
    updated_at: datetime
    used_at: datetime | None


class Rekeyed(NamedTuple):
    moved: int
    unreadable: int
    """So many no key opens: their owners must set them again."""


@dataclass(frozen=True, slots=True)
class Connections:
    """Those of one owner. `sealing` None: no key is set, so none can be kept."""

    database: Database
    sealing: Sealing | None
    owner_id: OwnerId

    async def set(self, provider: str, value: str) -> Connection:
        """Keep a credential, or a new one in the place of the old. Committed when this returns."""
        connections.check_provider(provider)
        _check_value(value)
        sealing = connections.needed(self.sealing)
        sealed = sealing.seal(value, self.owner_id, provider)

        def work(unit: Unit) -> ConnectionRow | None:
            connections.set_value(unit, self.owner_id, provider, sealed=sealed, key_mark=sealing.key_mark)
            return rows.find(unit.connection, self.owner_id, provider)

        return self._shown(_there(await self.database.transaction(work, name="connection.set")))

    async def get(self, provider: str) -> Connection:
        connections.check_provider(provider)
        look = partial(rows.find, owner_id=self.owner_id, provider=provider)
        return self._shown(_there(await self.database.read(look, is_single=True)))

    async def list(self) -> Sequence[Connection]:
        """All of them, by provider."""
        look = partial(rows.of_owner, owner_id=self.owner_id, limit=connections.MOST_PER_OWNER)
        return [self._shown(each) for each in await self.database.read(look)]

    async def remove(self, provider: str) -> None:
        """From the commit on no tool is given it; what runs with it goes on."""
        connections.check_provider(provider)
        work = partial(connections.remove, owner_id=self.owner_id, provider=provider)
        if not await self.database.transaction(work, name="connection.remove"):
            raise NotFound(_NONE)

    def _shown(self, row: ConnectionRow) -> Connection:
        state = "unreadable" if connections.value_of(row, self.sealing) is None else "ready"
        return Connection(row.provider, state, row.created_at, row.updated_at, row.used_at)


async def rekey(database: Database, sealing: Sealing | None) -> Rekeyed:
    """Seal the connections of all owners with the first key, some in each commit. Killed, it is simply repeated.

    What is set or removed meanwhile stays as its owner wants it.
    """
    sealing, moved, unreadable, after = connections.needed(sealing), 0, 0, ("", "")
    while True:
        look = partial(rows.of_other_keys, key_mark=sealing.key_mark, after=after, limit=_BATCH)
        found = await database.read(look)
        if not found:
            return Rekeyed(moved, unreadable)
        values = [(each, value) for each in found if (value := connections.value_of(each, sealing)) is not None]
        moved += await database.transaction(partial(_move, sealing=sealing, values=values), name="connections.rekey")
        unreadable += len(found) - len(values)
        after = (found[-1].owner_id, found[-1].provider)


def _move(unit: Unit, *, sealing: Sealing, values: Sequence[tuple[ConnectionRow, str]]) -> int:
    moved = 0
    for row, value in values:
        sealed = sealing.seal(value, row.owner_id, row.provider)
        moved += rows.reseal(unit, row, sealed=sealed, key_mark=sealing.key_mark)
    return moved


def _there(row: ConnectionRow | None) -> ConnectionRow:
    if row is None:
        raise NotFound(_NONE)
    return row


_NONE = "There is no such connection."


def _check_value(value: str) -> None:
    if len(value) < SHORTEST:
        raise InvalidInput(
            f"The value of a connection has at least {SHORTEST} characters: a shorter one could not be masked."
        )
    if len(value.encode(errors="surrogatepass")) > MOST_BYTES:
        raise InvalidInput(f"The value of a connection has at most {MOST_BYTES} bytes.")
