"""Webhooks, and what is to be delivered to them: written in the commit of what it tells of."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

_PENDING = sa.text("state = 'pending'")


def _instant(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=nullable)


def upgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("is_for_all", sa.Boolean(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("types", sa.Text(), nullable=True),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("sealed_before", sa.Text(), nullable=True),
        _instant("before_until", nullable=True),
        sa.Column("key_mark", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("off_reason", sa.Text(), nullable=True),
        _instant("failing_since", nullable=True),
        _instant("created_at"),
        _instant("updated_at"),
    )
    op.create_index("ix_webhooks_owner_id", "webhooks", ["owner_id"])
    op.create_table(
        "webhook_deliveries",
        sa.Column("webhook_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("event", sa.BigInteger(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("told", sa.Text(), nullable=False),
        _instant("at"),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        _instant("due_at"),
        _instant("until"),
        _instant("ended_at", nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("log", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("webhook_id", "session_id", "event"),
    )
    op.create_index("ix_webhook_deliveries_session_id", "webhook_deliveries", ["session_id"])
    op.create_index("ix_webhook_deliveries_at", "webhook_deliveries", ["webhook_id", "at"])
    op.create_index(
        "ix_webhook_deliveries_due",
        "webhook_deliveries",
        ["webhook_id", "due_at"],
        sqlite_where=_PENDING,
        postgresql_where=_PENDING,
    )
