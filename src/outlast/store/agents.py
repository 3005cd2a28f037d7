"""Which agents there is a living worker for: what waits for another one waits until somebody starts it."""

from collections.abc import Collection

import sqlalchemy as sa
from pydantic_core import from_json, to_json

from outlast.ids import WorkerId
from outlast.store.tables import workers
from outlast.store.unit import Unit


def encode(agents: Collection[str]) -> str:
    """As they stand in a worker's row."""
    return to_json(sorted(agents)).decode()


def present(connection: sa.Connection) -> frozenset[str]:
    found = connection.execute(sa.select(workers.c.agents)).scalars()
    return frozenset(name for each in found for name in from_json(each))


def enter_alone(unit: Unit, worker_id: WorkerId, agents: Collection[str], *, host: str, pid: int) -> None:
    """The one worker of a file: whoever was there before it is gone."""
    unit.connection.execute(sa.delete(workers))
    row = {"id": worker_id, "host": host, "pid": pid, "agents": encode(agents)}
    unit.connection.execute(sa.insert(workers), {**row, "started_at": unit.now_us, "seen_at": unit.now_us})
