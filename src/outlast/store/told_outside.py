"""Which events webhooks are told of, and the rows that are written for them in the events' own commit."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from outlast.events.types import EventType
from outlast.store import tables
from outlast.store.sql.statement import Statement

RETRIED_FOR = timedelta(hours=24)
TEST = "webhook.test"
"""What a webhook is told when somebody tries it."""

OUTSIDE = frozenset(
    {
        EventType.TURN_COMPLETED,
        EventType.TURN_FAILED,
        EventType.TURN_STOPPED,
        EventType.TASK_ENDED,
        EventType.REQUEST_OPENED,
        EventType.SESSION_FLAGGED,
    }
)


def told_of(type_: EventType, data: Mapping[str, Any], **ids: str | None) -> dict[str, Any]:
    """Ids and states: nothing that a person, a tool or a model has said, and no money."""
    told: dict[str, Any] = {name: id for name, id in ids.items() if id is not None}
    match type_:
        case EventType.TASK_ENDED:
            told |= {name: data["task"].get(name) for name in ("state", "kind") if data["task"].get(name) is not None}
            told.setdefault("task_id", data["task"]["id"])
        case EventType.REQUEST_OPENED:
            told |= {"state": "awaiting_input", "request_id": data["request"]["id"], "kind": data["request"]["kind"]}
        case EventType.SESSION_FLAGGED:
            told["state"] = "flagged"
        case _:
            told["state"] = type_.value.partition(".")[2]
    return told


def _text(name: str) -> sa.BindParameter[str]:
    return sa.bindparam(name, type_=sa.Text)


def _number(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.BigInteger)


_HOOK = tables.webhooks.c
_VALUES: dict[str, sa.ColumnElement[Any]] = {
    "webhook_id": _HOOK.id,
    "session_id": _text("session_id"),
    "event": _number("event"),
    "owner_id": _text("owner_id"),
    "type": _text("type"),
    "told": _text("told"),
    "at": _number("at"),
    "state": sa.literal_column("'pending'", sa.Text),
    "attempts": sa.literal_column("0", sa.Integer),
    "due_at": _number("due_at"),
    "until": _number("until"),
    "log": sa.literal_column("'[]'", sa.Text),
}
INSERT = Statement(
    sa.insert(tables.webhook_deliveries).from_select(
        list(_VALUES),
        sa.select(*_VALUES.values()).where(
            _HOOK.state == sa.literal_column("'active'"),
            sa.or_(_HOOK.owner_id == _text("hook_owner"), _HOOK.is_for_all),
            sa.or_(_HOOK.types.is_(None), _HOOK.types.like(_text("quoted_type"))),
        ),
    )
)
"""For each webhook that wants to know: the owner's own, and those of administrators that are for all."""
