"""Webhooks: where an owner wants to be told of what happens. Their secrets stand here sealed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from pydantic_core import from_json, to_json

from outlast.clock import from_microseconds
from outlast.ids import OwnerId, WebhookId
from outlast.store.sql.statement import Row
from outlast.store.tables import webhook_deliveries, webhooks
from outlast.store.unit import Unit

WebhookState = Literal["active", "off"]


@dataclass(frozen=True, slots=True)
class WebhookRow:
    id: WebhookId
    owner_id: OwnerId
    is_for_all: bool
    url: str
    types: Sequence[str] | None
    sealed: str
    sealed_before: str | None
    before_until: datetime | None
    key_mark: str
    state: WebhookState
    off_reason: str | None
    failing_since: datetime | None
    created_at: datetime
    updated_at: datetime


def _instant(value: int | None) -> datetime | None:
    return None if value is None else from_microseconds(value)


def _from_row(row: Row) -> WebhookRow:
    return WebhookRow(
        id=WebhookId(row["id"]),
        owner_id=OwnerId(row["owner_id"]),
        is_for_all=bool(row["is_for_all"]),
        url=row["url"],
        types=None if row["types"] is None else from_json(row["types"]),
        sealed=row["sealed"],
        sealed_before=row["sealed_before"],
        before_until=_instant(row["before_until"]),
        key_mark=row["key_mark"],
        state=row["state"],
        off_reason=row["off_reason"],
        failing_since=_instant(row["failing_since"]),
        created_at=from_microseconds(row["created_at"]),
        updated_at=from_microseconds(row["updated_at"]),
    )


def types_as_stored(types: Sequence[str] | None) -> str | None:
    return None if types is None else to_json(list(types)).decode()


def add(unit: Unit, webhook_id: WebhookId, owner_id: str, **values: Any) -> None:
    made = {"state": "active", "created_at": unit.now_us, "updated_at": unit.now_us}
    unit.connection.execute(sa.insert(webhooks).values(id=webhook_id, owner_id=owner_id, **made, **values))


def find(connection: sa.Connection, webhook_id: str, owner_id: str) -> WebhookRow | None:
    query = sa.select(webhooks).where(webhooks.c.id == webhook_id, webhooks.c.owner_id == owner_id)
    row = connection.execute(query).mappings().first()
    return None if row is None else _from_row(row)


def lock(unit: Unit, webhook_id: str) -> WebhookRow | None:
    query = sa.select(webhooks).where(webhooks.c.id == webhook_id).with_for_update()
    row = unit.connection.execute(query).mappings().first()
    return None if row is None else _from_row(row)


def of_owner(connection: sa.Connection, owner_id: str) -> Sequence[WebhookRow]:
    """In the order in which they were made."""
    query = sa.select(webhooks).where(webhooks.c.owner_id == owner_id).order_by(webhooks.c.id)
    return [_from_row(row) for row in connection.execute(query).mappings()]


def count(connection: sa.Connection, owner_id: str) -> int:
    query = sa.select(sa.func.count()).select_from(webhooks).where(webhooks.c.owner_id == owner_id)
    return connection.execute(query).scalar_one()


def change(unit: Unit, webhook_id: WebhookId, **values: Any) -> None:
    changed = sa.update(webhooks).where(webhooks.c.id == webhook_id)
    unit.connection.execute(changed.values(updated_at=unit.now_us, **values))


def mark(unit: Unit, webhook_id: WebhookId, **values: Any) -> None:
    """What was seen of it; nobody has changed it."""
    unit.connection.execute(sa.update(webhooks).where(webhooks.c.id == webhook_id).values(**values))


def remove(unit: Unit, webhook_id: WebhookId) -> None:
    unit.connection.execute(sa.delete(webhook_deliveries).where(webhook_deliveries.c.webhook_id == webhook_id))
    unit.connection.execute(sa.delete(webhooks).where(webhooks.c.id == webhook_id))


def with_work(connection: sa.Connection, now_us: int) -> Sequence[WebhookRow]:
    """The active ones for which something is due; those that fail come last."""
    due = (
        webhook_deliveries.c.webhook_id == webhooks.c.id,
        webhook_deliveries.c.state == sa.literal_column("'pending'"),
        webhook_deliveries.c.due_at <= now_us,
    )
    query = sa.select(webhooks).where(webhooks.c.state == "active", sa.exists().where(*due))
    ordered = query.order_by(webhooks.c.failing_since.is_not(None), webhooks.c.id)
    return [_from_row(row) for row in connection.execute(ordered).mappings()]


def of_other_keys(connection: sa.Connection, key_mark: str, *, after: str, limit: int) -> Sequence[WebhookRow]:
    """Those of all owners whose secret another key sealed, in one order, after an id."""
    query = sa.select(webhooks).where(webhooks.c.key_mark != key_mark, webhooks.c.id > after)
    return [_from_row(row) for row in connection.execute(query.order_by(webhooks.c.id).limit(limit)).mappings()]
