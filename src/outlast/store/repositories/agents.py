"""Which agents there is a living worker for: what waits for another one waits until somebody starts it."""

from collections.abc import Collection, Sequence
from hashlib import sha256

import sqlalchemy as sa
from pydantic_core import to_json

from outlast.ids import WorkerId
from outlast.store.tables import workers
from outlast.store.unit import Unit
from outlast.values import row_json
from outlast.values.shape import list_of, text

FROZEN_SECONDS = 10.0
"""How long a row may go without renewal while its lock is held: a host that is frozen, or cut off."""
_UNSEEN_SECONDS = 3.0
"""The same without its lock: a connection that was cut comes back sooner."""

HELD = (
    "ARRAY(SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks WHERE locktype = 'advisory' "
    "AND objsubid = 1 AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
)
"""The advisory locks that somebody holds. The locks of all databases of the server are listed."""
SILENT = "extract(epoch FROM clock_timestamp()) - seen_at / 1000000.0"
"""Seconds since a worker was seen, by the clock of the database."""
_SEEN = sa.text(f"SELECT id, agents, {SILENT} AS silent, {HELD} AS held FROM workers")


def lock_key(worker_id: WorkerId) -> int:
    """The advisory lock that a worker holds as long as its connection lives."""
    return int.from_bytes(sha256(worker_id.encode()).digest()[:8], signed=True)


def encode(agents: Collection[str]) -> str:
    """As they stand in a worker's row."""
    return to_json(sorted(agents)).decode()


def of_the_living(connection: sa.Connection) -> Sequence[frozenset[str]]:
    """The agents of each worker that is there. A row alone is no proof: whoever dies last is buried by nobody."""
    if connection.dialect.name == "sqlite":  # the one worker of a file is the process that asks
        found = list(connection.execute(sa.select(workers.c.agents)).scalars())
    else:
        found = [row.agents for row in connection.execute(_SEEN) if _lives(row)]
    return [frozenset(_decode(each)) for each in found]


def _decode(stored: str) -> list[str]:
    """Of a row that cannot be read nobody knows whom its worker can run: for no agent it counts as there."""
    names = row_json.read(stored)
    return names if list_of(text)(names) else []


def present(connection: sa.Connection) -> frozenset[str]:
    return frozenset[str]().union(*of_the_living(connection))


def _lives(row: sa.Row[tuple[str, str, float, list[int]]]) -> bool:
    is_connected = lock_key(WorkerId(row.id)) in row.held
    return float(row.silent) <= (FROZEN_SECONDS if is_connected else _UNSEEN_SECONDS)


def enter_alone(unit: Unit, worker_id: WorkerId, agents: Collection[str], *, host: str, pid: int) -> None:
    """The one worker of a file: whoever was there before it is gone."""
    unit.connection.execute(sa.delete(workers))
    row = {"id": worker_id, "host": host, "pid": pid, "agents": encode(agents)}
    unit.connection.execute(sa.insert(workers), {**row, "started_at": unit.now_us, "seen_at": unit.now_us})
