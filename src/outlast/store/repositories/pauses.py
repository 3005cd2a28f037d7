"""The pause: while it stands, nothing new is started, though everything is accepted."""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from outlast.clock import from_microseconds
from outlast.store.sql.statement import Statement
from outlast.store.tables import pauses
from outlast.store.unit import Unit

_THE_ONE = 1
_FIND = Statement(sa.select(pauses.c.by, pauses.c.since))


@dataclass(frozen=True, slots=True)
class Pause:
    by: str
    since: datetime


def find(connection: sa.Connection) -> Pause | None:
    row = _FIND.first(connection)
    return None if row is None else Pause(row["by"], from_microseconds(row["since"]))


def begin(unit: Unit, by: str) -> Pause:
    """The first pause stands; asking again changes nothing."""
    found = find(unit.connection)
    if found is None:
        unit.connection.execute(sa.insert(pauses).values(id=_THE_ONE, by=by, since=unit.now_us))
        found = Pause(by, unit.now)
    return found


def end(unit: Unit) -> bool:
    """False when there was none."""
    return unit.connection.execute(sa.delete(pauses)).rowcount > 0
