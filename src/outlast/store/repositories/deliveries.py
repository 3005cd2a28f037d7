"""Deliveries: what a webhook is to be told. A row is written in the commit of the event that it tells of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa
from pydantic_core import from_json, to_json

from outlast.clock import from_microseconds, to_microseconds
from outlast.ids import WebhookId
from outlast.store.sql.statement import Row
from outlast.store.tables import webhook_deliveries
from outlast.store.unit import Unit

DeliveryState = Literal["pending", "delivered", "failed"]
Told = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Delivery:
    """`told`: the data of the message. `attempts`: how often it was sent, this time included while it is sent."""

    webhook_id: WebhookId
    session_id: str
    event: int
    type: str
    told: Told
    at: datetime
    state: DeliveryState
    attempts: int
    due_at: datetime
    until: datetime
    ended_at: datetime | None
    status: int | None
    error: str | None
    log: Sequence[Mapping[str, Any]]

    @property
    def id(self) -> str:
        """The same over all its retries, and for every webhook that is told of the event."""
        return f"msg_{self.session_id.partition('_')[2]}_{self.event}"


def place_of(delivery_id: str) -> tuple[str, int] | None:
    """The session and the number of the event that an id names."""
    head, _, number = delivery_id.rpartition("_")
    name = head.removeprefix("msg_")
    if not head.startswith("msg_") or not number.isascii() or not number.isdigit() or len(number) > 18:
        return None
    return (f"ses_{name}" if name else "", int(number))


def _from_row(row: Row) -> Delivery:
    return Delivery(
        webhook_id=WebhookId(row["webhook_id"]),
        session_id=row["session_id"],
        event=row["event"],
        type=row["type"],
        told=from_json(row["told"]),
        at=from_microseconds(row["at"]),
        state=row["state"],
        attempts=row["attempts"],
        due_at=from_microseconds(row["due_at"]),
        until=from_microseconds(row["until"]),
        ended_at=None if row["ended_at"] is None else from_microseconds(row["ended_at"]),
        status=row["status"],
        error=row["error"],
        log=from_json(row["log"]),
    )


def _one(webhook_id: str, session_id: str, event: int) -> sa.ColumnElement[bool]:
    return sa.and_(
        webhook_deliveries.c.webhook_id == webhook_id,
        webhook_deliveries.c.session_id == session_id,
        webhook_deliveries.c.event == event,
    )


def add(unit: Unit, webhook_id: str, owner_id: str, type_: str, told: Told, *, until: timedelta) -> str:
    """One that tells of no event of a session; gives its id."""
    values = {
        "webhook_id": webhook_id,
        "session_id": "",
        "event": unit.now_us,
        "owner_id": owner_id,
        "type": type_,
        "told": to_json(told).decode(),
        "at": unit.now_us,
        "due_at": unit.now_us,
        "until": to_microseconds(unit.now + until),
    }
    unit.connection.execute(sa.insert(webhook_deliveries).values(state="pending", attempts=0, log="[]", **values))
    return f"msg__{unit.now_us}"


def find(connection: sa.Connection, webhook_id: str, session_id: str, event: int) -> Delivery | None:
    row = connection.execute(sa.select(webhook_deliveries).where(_one(webhook_id, session_id, event))).mappings()
    found = row.first()
    return None if found is None else _from_row(found)


def page(
    connection: sa.Connection, webhook_id: str, *, state: str | None, before: tuple[int, str, int] | None, limit: int
) -> Sequence[Delivery]:
    """Newest first."""
    columns = (webhook_deliveries.c.at, webhook_deliveries.c.session_id, webhook_deliveries.c.event)
    query = sa.select(webhook_deliveries).where(webhook_deliveries.c.webhook_id == webhook_id)
    if state is not None:
        query = query.where(webhook_deliveries.c.state == state)
    if before is not None:
        query = query.where(sa.tuple_(*columns) < sa.tuple_(*map(sa.literal, before)))
    rows = connection.execute(query.order_by(*(each.desc() for each in columns)).limit(limit))
    return [_from_row(row) for row in rows.mappings()]


def due(unit: Unit, webhook_id: str, *, limit: int) -> Sequence[Delivery]:
    """Those that are to be sent now, the oldest first; none that another process is just taking."""
    query = (
        sa.select(webhook_deliveries)
        .where(
            webhook_deliveries.c.webhook_id == webhook_id,
            webhook_deliveries.c.state == sa.literal_column("'pending'"),
            webhook_deliveries.c.due_at <= unit.now_us,
        )
        .order_by(webhook_deliveries.c.due_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return [_from_row(row) for row in unit.connection.execute(query).mappings()]


def change(unit: Unit, delivery: Delivery, **values: Any) -> bool:
    """Only of the attempt that was read: False when it has gone on since."""
    one = _one(delivery.webhook_id, delivery.session_id, delivery.event)
    changed = sa.update(webhook_deliveries).where(
        one, webhook_deliveries.c.attempts == delivery.attempts, webhook_deliveries.c.state == delivery.state
    )
    return unit.connection.execute(changed.values(**values)).rowcount > 0
